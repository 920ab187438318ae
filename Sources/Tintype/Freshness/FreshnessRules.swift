import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeImage

/// How one loader judges stored responses.
struct FreshnessRules: Sendable {
    /// For requests without a policy of their own.
    let defaultPolicy: CachePolicy
    /// Whether the rules for caches that serve many users hold as well.
    let isShared: Bool
    /// Whether a body may be stored at all; `nil` where it begins like a picture.
    private let mayBeStored: (@Sendable (Data) -> Bool)?
    private let coders: CoderRegistry
    let now: @Sendable () -> Date
    /// The fields that are sent unless a request has its own.
    let defaultHeaders: HTTPHeaders
    /// The fields, in lower case, that the program knows to choose no representation.
    private let neutralHeaders: Set<String>

    init(_ configuration: LoaderActor.Configuration) {
        self.defaultPolicy = configuration.cachePolicy
        self.isShared = configuration.isSharedCache
        self.mayBeStored = configuration.isStorable
        self.coders = configuration.coders
        self.now = configuration.now
        self.neutralHeaders = Set(configuration.neutralHeaders.map { $0.lowercased() })
        self.defaultHeaders = [
            "Accept": configuration.downloads.acceptHeader, "User-Agent": configuration.downloads.userAgent,
        ]
    }

    /// The format of a body: a known one, or one of the request's coder or a registered one.
    func format(of body: Data, for request: ImageRequest) -> ImageFormat? {
        ImageFormat(sniffing: body, among: self.coders.formats(for: request))
    }

    /// Whether a body may be stored at all.
    func isStorable(_ body: Data, for request: ImageRequest) -> Bool {
        self.mayBeStored?(body) ?? (self.format(of: body, for: request) != nil)
    }

    /// The policy that counts for a request.
    func policy(for request: ImageRequest) -> CachePolicy {
        request.isLocal ? .neverRevalidate : self.networkPolicy(for: request)
    }

    private func networkPolicy(for request: ImageRequest) -> CachePolicy {
        // Nobody else is asked then, so what is there must do.
        if request.options.contains(.cacheOnly) { return .neverRevalidate }
        if request.options.contains(.refreshCached) { return .alwaysRevalidate }
        return request.cachePolicy ?? self.defaultPolicy
    }

    /// All fields of the request that the origin sees, as far as responses may vary on them.
    func headers(of request: ImageRequest) -> HTTPHeaders {
        var headers = request.headers
        for (name, value) in self.defaultHeaders where headers[name] == nil { headers.append(value, for: name) }
        return headers
    }

    /// Names the encoded bytes as HTTP does; see ``ImageRequest/resourceKey``.
    func resourceKey(of request: ImageRequest) -> CacheKey {
        guard !self.neutralHeaders.isEmpty else { return request.resourceKey }
        return RequestKeys.resource(
            url: request.url,
            headers: request.headers,
            options: request.options,
            neutral: self.neutralHeaders
        )
    }

    /// What may be done with an entry.
    func decision(for metadata: EntryMetadata, of request: ImageRequest) -> ReuseDecision {
        ReuseDecision(
            metadata.response?.freshness,
            // Only what came over the network has a response, and looking at a URL takes long.
            policy: metadata.response == nil ? self.policy(for: request) : self.networkPolicy(for: request),
            headers: request.headers,
            now: self.now()
        )
    }
}
