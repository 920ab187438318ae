// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeDownloading
import TintypeTransforms

// The loader refuses requests that make no sense before any work.

extension ImageRequest.Source {
    /// Throws `LoadError` if the URL or the cache key makes no sense.
    func check(_ scheme: URLScheme, fetchesAnyScheme: Bool) throws(LoadError) {
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
                message: "URLs with the scheme \(name) cannot be loaded; use http, https, file or data."
            )
        }
        try require(self.cacheKey != "", "cache key is empty")
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
}

extension ImageRequest.Rendering {
    /// Throws `LoadError` if a size makes no sense.
    func check() throws(LoadError) {
        do {
            try self.thumbnail?.check()
        } catch {
            throw LoadError(code: .invalidSize, message: "The thumbnail makes no sense. \(error.message)")
        }
        if let limit = self.scaleDownLimit { try require(limit > 0, "scale-down limit is \(limit)") }
        if let scale { try require(scale.isFinite && scale > 0, "scale is \(scale)") }
    }
}

extension ImageRequest.Caching {
    /// Throws `LoadError` if the lifetime makes no sense.
    func check() throws(LoadError) {
        if let lifetime { try require(lifetime > .zero, "lifetime is \(lifetime)") }
        if let memoryLifetime { try require(memoryLifetime > .zero, "lifetime in memory is \(memoryLifetime)") }
    }
}

extension ImageRequest.Transport {
    /// Throws `LoadError` if a limit makes no sense.
    func check() throws(LoadError) {
        if let idle = self.timeouts.idle { try require(idle > .zero, "idle timeout is \(idle)") }
        if let total = self.timeouts.total { try require(total > .zero, "total timeout is \(total)") }
        if let attempts = self.retryPolicy?.maximumAttempts {
            try require(attempts > 0, "number of attempts is \(attempts)")
        }
        if let bodyLimit { try require(bodyLimit > 0, "body limit is \(bodyLimit)") }
        if let limits = self.decodingLimits { try require(limits.areSound, "decoding limits are negative: \(limits)") }
    }
}

private func require(_ isSound: Bool, _ fault: @autoclosure () -> String) throws(LoadError) {
    guard !isSound else { return }
    throw LoadError(
        code: .invalidRequest,
        message: "The request makes no sense: its \(fault()). Change it, or leave it to the loader."
    )
}

extension DecodingLimits {
    /// Whether no limit is negative.
    fileprivate var areSound: Bool {
        let limits = [
            self.maximumPixels, self.maximumSide, self.maximumEncodedBytes, self.maximumWork, self.maximumFrames,
            self.maximumAnimationPixels,
        ]
        return limits.allSatisfy { $0 >= 0 }
    }
}
