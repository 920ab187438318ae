import TintypeHTTP

/// What one download may take: the request's own limits, or those of the configuration.
struct TransferLimits {
    let timeout: Duration
    let connectTimeout: Duration
    let firstByteTimeout: Duration?
    let totalTimeout: Duration?
    let minimumSpeed: MinimumSpeed?
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
    static func speedCheckInterval(_ speed: MinimumSpeed?) -> Duration {
        let longest = Duration.milliseconds(500)
        return speed.map { max(.milliseconds(10), min(longest, $0.period / 8)) } ?? longest
    }

    /// The bytes that sizes, extensions and ends of chunks may have around so many bytes of a body.
    ///
    /// A chunk has five bytes around it, and costs as much time as some thousand bytes: those of one byte are no way to
    /// send megabytes.
    func framingLimit(bodyBytes: Int) -> Int {
        let (sum, overflow) = self.maximumHeaderSize.addingReportingOverflow(bodyBytes)
        return overflow ? .max : sum
    }

    /// A time limit, or `nil` where it is no time at all, which stands for the default.
    static func time(_ limit: Duration?) -> Duration? {
        limit.flatMap { $0 > .zero ? $0 : nil }
    }

    /// Whether a `Content-Type` is among those that are accepted; patterns end in `/*` for all of a kind.
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
