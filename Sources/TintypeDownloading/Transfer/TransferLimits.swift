// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// The limits of one download: the request's own, or else the configuration's.
struct TransferLimits {
    let timeout: Duration
    let connectTimeout: Duration
    let firstByteTimeout: Duration?
    let totalTimeout: Duration?
    let minimumSpeed: DownloadActor.MinimumSpeed?
    let maximumBodySize: Int
    let maximumHeaderSize: Int
    let acceptableStatusCodes: StatusCodes
    let acceptableContentTypes: [String]?

    init(_ request: DownloadRequest, _ configuration: DownloadActor.Configuration) {
        self.timeout = Self.time(request.timeout) ?? configuration.timeout
        self.connectTimeout = Self.time(request.connectTimeout) ?? configuration.connectTimeout
        self.firstByteTimeout = Self.time(request.firstByteTimeout) ?? configuration.firstByteTimeout
        self.totalTimeout = Self.time(request.totalTimeout) ?? configuration.totalTimeout
        self.minimumSpeed = configuration.minimumSpeed
        self.maximumBodySize = request.maximumBodySize ?? configuration.maximumBodySize
        self.maximumHeaderSize = configuration.maximumHeaderSize
        self.acceptableStatusCodes = request.acceptableStatusCodes ?? configuration.acceptableStatusCodes
        self.acceptableContentTypes = request.acceptableContentTypes ?? configuration.acceptableContentTypes
    }

    /// How often speeds are looked at: often enough that a period is kept to an eighth.
    static func speedCheckInterval(_ speed: DownloadActor.MinimumSpeed?) -> Duration {
        let longest = Duration.milliseconds(500)
        return speed.map { max(.milliseconds(10), min(longest, $0.period / 8)) } ?? longest
    }

    /// Returns the most bytes that sizes, extensions and ends of chunks may take around so many bytes of a body.
    ///
    /// A chunk has five bytes around it, and costs as much time as some thousand bytes. Megabytes in chunks of one byte
    /// are refused.
    func framingLimit(bodyBytes: Int) -> Int {
        let (sum, overflow) = self.maximumHeaderSize.addingReportingOverflow(bodyBytes)
        return overflow ? .max : sum
    }

    /// Returns a time limit, or `nil` for a limit of zero, which stands for the default.
    static func time(_ limit: Duration?) -> Duration? {
        limit.flatMap { $0 > .zero ? $0 : nil }
    }

    /// Returns whether the request accepts a `Content-Type`; patterns that end in `/*` accept all of a kind.
    func accepts(contentType: String?) -> Bool {
        guard let acceptableContentTypes else { return true }
        guard let essence = contentType?.split(separator: ";").first?.filter({ !$0.isWhitespace }).lowercased() else {
            return false
        }
        return acceptableContentTypes.contains { pattern in
            let pattern = pattern.lowercased()
            if pattern == "*/*" { return true }
            return pattern.hasSuffix("/*") ? essence.hasPrefix(pattern.dropLast()) : essence == pattern
        }
    }
}
