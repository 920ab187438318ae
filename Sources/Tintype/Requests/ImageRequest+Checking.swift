import FoundationEssentials
import TintypeCoding
import TintypeTransforms

// The loader refuses requests that make no sense before any work.

extension ImageRequest.Fields {
    /// Throws if the request makes no sense.
    ///
    /// - Parameters:
    ///   - scheme: The scheme of the URL.
    ///   - fetchesAnyScheme: Whether there is a fetcher that may know other schemes than the downloader.
    /// - Throws: `LoadError` with the code `invalidURL`, `unsupportedScheme`, `invalidSize` or `invalidRequest`.
    func check(_ scheme: URLScheme, fetchesAnyScheme: Bool) throws(LoadError) {
        try self.checkURL(scheme, fetchesAnyScheme: fetchesAnyScheme)
        if let thumbnail { try Self.check(thumbnail) }
        if let limit = self.scaleDownLimit { try Self.require(limit > 0, "scaleDownLimit", limit) }
        if let cacheKey { try Self.require(!cacheKey.isEmpty, "cacheKey", "empty") }
        try self.details?.check()
    }

    private static func check(_ thumbnail: Resize) throws(LoadError) {
        do {
            try thumbnail.check()
        } catch {
            throw LoadError(code: .invalidSize, message: "The thumbnail makes no sense. \(error.message)")
        }
    }

    private func checkURL(_ scheme: URLScheme, fetchesAnyScheme: Bool) throws(LoadError) {
        switch scheme {
        case .file, .data: break
        case .http: try self.checkHost()
        case .other, .none:
            let text = self.url.absoluteString
            guard !text.isEmpty else { throw Self.invalidURL("The URL is empty") }
            guard !fetchesAnyScheme else { break }
            guard scheme == .other else { throw Self.invalidURL("The URL \(text.prefix(200)) has no scheme") }
            let name = text.prefix { $0 != ":" }.prefix(40)
            throw LoadError(
                code: .unsupportedScheme,
                message: "URLs with the scheme \(name) can't be loaded; use http, https, file or data."
            )
        }
    }

    /// Refuses a URL of HTTP whose host is missing: no fetcher can find its origin.
    private func checkHost() throws(LoadError) {
        let text = self.url.absoluteString
        let rest = text.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst()
        let host = rest.dropFirst(2).first
        guard rest.starts(with: "//".utf8), let host, !"/?#:".utf8.contains(host) else {
            throw Self.invalidURL("The URL names no host")
        }
    }

    private static func invalidURL(_ what: String) -> LoadError {
        LoadError(code: .invalidURL, message: "\(what); give an absolute one, such as https://example.com/image.jpg.")
    }

    fileprivate static func require(_ isSound: Bool, _ field: String, _ value: Any) throws(LoadError) {
        guard !isSound else { return }
        throw LoadError(
            code: .invalidRequest,
            message: "The request's \(field) makes no sense: it is \(value). Change it, or leave it to the loader."
        )
    }
}

extension ImageRequest.Details {
    fileprivate func check() throws(LoadError) {
        func require(_ isSound: Bool, _ field: String, _ value: Any) throws(LoadError) {
            try ImageRequest.Fields.require(isSound, field, value)
        }
        if let scale { try require(scale.isFinite && scale > 0, "scale", scale) }
        if let lifetime { try require(lifetime > .zero, "lifetime", lifetime) }
        if let bodyLimit { try require(bodyLimit > 0, "bodyLimit", bodyLimit) }
        if let idle = self.timeouts.idle { try require(idle > .zero, "timeouts.idle", idle) }
        if let total = self.timeouts.total { try require(total > .zero, "timeouts.total", total) }
        if let attempts = self.retryPolicy?.maximumAttempts {
            try require(attempts > 0, "retryPolicy.maximumAttempts", attempts)
        }
        if let limits = self.decodingLimits { try require(limits.areSound, "decodingLimits", limits) }
    }
}

extension DecodingLimits {
    /// Whether anything at all may be decoded.
    fileprivate var areSound: Bool {
        let limits = [
            self.maximumPixels, self.maximumSide, self.maximumEncodedBytes, self.maximumWork, self.maximumFrames,
            self.maximumAnimationPixels,
        ]
        return limits.allSatisfy { $0 >= 0 }
    }
}
