import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeImage

/// How one loader judges stored responses.
struct FreshnessRules: Sendable {
    /// For requests without a policy of their own.
    let defaultPolicy: CachePolicy
    /// Whether the rules for caches that serve many users hold as well.
    let isShared: Bool
    /// Whether a body may be stored at all.
    let isStorable: @Sendable (Data) -> Bool
    let now: @Sendable () -> Date
    /// The fields that are sent unless a request has its own.
    let defaultHeaders: HTTPHeaders
    /// The fields, in lower case, that the program knows to choose no representation.
    private let neutralHeaders: Set<String>

    init(_ configuration: LoaderActor.Configuration) {
        self.defaultPolicy = configuration.cachePolicy
        self.isShared = configuration.isSharedCache
        self.isStorable = configuration.isStorable ?? { ImageFormat(sniffing: $0) != nil }
        self.now = configuration.now
        self.neutralHeaders = Set(configuration.neutralHeaders.map { $0.lowercased() })
        self.defaultHeaders = [
            "Accept": configuration.downloads.acceptHeader, "User-Agent": configuration.downloads.userAgent,
        ]
    }

    /// How a load of `request` uses the caches.
    func plan(for request: ImageRequest) -> CachingPlan {
        request.cachingPlan(loaderPolicy: self.defaultPolicy)
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
            policy: self.plan(for: request).policy,
            headers: request.headers,
            now: self.now()
        )
    }
}
