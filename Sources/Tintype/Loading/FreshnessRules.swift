import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeHTTP
import TintypeImage

/// How long responses are fresh whose origins say nothing, too little or too much, where HTTP's freshness counts.
///
/// What an origin forbids stays forbidden: `no-store`, `no-cache` and `Vary: *` know no lifetime. The bounds hold for
/// responses that come from now on; what is stored keeps the lifetime that it was stored with.
public struct FreshnessBounds: Sendable, Hashable {
    /// The lifetime of a response that has neither a lifetime nor a validator, which would be downloaded for each load;
    /// default none.
    ///
    /// RFC 9111 (4.2.2) leaves this to caches.
    public var defaultLifetime: Duration
    /// The shortest lifetime; default none.
    ///
    /// It overrules what the origin says.
    public var minimumLifetime: Duration
    /// The longest lifetime, of the default as well; `nil`, the default, is no limit.
    public var maximumLifetime: Duration?

    /// Creates bounds, by default none.
    public init(
        defaultLifetime: Duration = .zero,
        minimumLifetime: Duration = .zero,
        maximumLifetime: Duration? = nil
    ) {
        self.defaultLifetime = defaultLifetime
        self.minimumLifetime = minimumLifetime
        self.maximumLifetime = maximumLifetime
    }

    /// The lifetime of a response within the bounds, in seconds.
    fileprivate func lifetime(of record: ResponseRecord) -> Double {
        var lifetime = record.freshness.lifetime
        let isSilent = !Self.statingNames.contains { !record.values(for: $0).isEmpty }
        if isSilent, lifetime == 0 { lifetime = self.defaultLifetime / .seconds(1) }
        lifetime = max(lifetime, self.minimumLifetime / .seconds(1))
        return min(lifetime, self.maximumLifetime.map { max(0, $0 / .seconds(1)) } ?? .infinity)
    }

    /// The fields that say how long a response is fresh, or by which the origin can be asked.
    private static let statingNames = ["Cache-Control", "Expires", "ETag", "Last-Modified"]
}

/// How one loader judges stored responses.
struct FreshnessRules: Sendable {
    /// For requests without a policy of their own.
    let defaultPolicy: CachePolicy
    /// Whether the rules for caches that serve many users hold as well.
    let isShared: Bool
    /// Whether a body may be stored at all; `nil` where it begins like an image.
    private let mayBeStored: (@Sendable (Data) -> Bool)?
    private let coders: CoderRegistry
    let now: @Sendable () -> Date
    /// The fields that are sent unless a request has its own.
    let defaultHeaders: HeaderFields
    /// The fields, in lower case, that the program knows to choose no representation.
    private let neutralHeaders: Set<String>
    /// Whether requests have cookies that are none of their fields.
    private let sendsCookies: Bool
    private let bounds: FreshnessBounds

    init(_ configuration: LoaderActor.Configuration) {
        self.defaultPolicy = configuration.cachePolicy
        self.isShared = configuration.isSharedCache
        self.mayBeStored = configuration.isStorable
        self.coders = configuration.coders
        self.now = configuration.now
        self.neutralHeaders = Set(configuration.neutralHeaders.map { $0.lowercased() })
        self.sendsCookies = configuration.downloads.cookieJar != nil
        self.bounds = configuration.freshnessBounds
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

    /// How a load of `request` uses the caches.
    func plan(for request: ImageRequest) -> CachingPlan {
        request.cachingPlan(loaderPolicy: self.defaultPolicy)
    }

    /// The demand of a load of `request`.
    func demand(of request: ImageRequest) -> Demand { Demand(request, plan: self.plan(for: request)) }

    /// All fields of the request that the origin sees, as far as responses may vary on them.
    func headers(of request: ImageRequest) -> HeaderFields {
        var headers = request.headers + self.defaultHeaders.filter { request.headers[$0.name] == nil }
        if headers["Authorization"] == nil, let own = request.authorization {
            headers.append(own, for: "Authorization")
        }
        return headers
    }

    /// Names the encoded bytes as HTTP does; see ``ImageRequest/resourceKey``.
    func resourceKey(of request: ImageRequest) -> CacheKey {
        request.resourceKey(neutral: self.neutralHeaders)
    }

    /// The record as this loader may reuse it: with a lifetime within its bounds, and asked about each time where it
    /// varies on the cookies of a jar, which may have others by then.
    func judged(_ record: ResponseRecord, of request: ImageRequest) -> ResponseRecord {
        var freshness = record.freshness
        freshness.lifetime = self.bounds.lifetime(of: record)
        let sendsCookies = request.cookies.map { $0 != .disabled } ?? self.sendsCookies
        if sendsCookies, RequestSelection.names(in: record.values(for: "Vary"))?.contains("cookie") ?? false {
            freshness.flags.insert(.variesOnEverything)
        }
        guard freshness != record.freshness else { return record }
        return ResponseRecord(
            status: record.status,
            fields: record.fields,
            requestDate: record.requestDate,
            responseDate: record.responseDate,
            selectionDigest: record.selectionDigest,
            freshness: freshness
        )
    }

    /// What may be done with an entry.
    func decision(
        for metadata: EntryMetadata,
        of request: ImageRequest,
        under policy: CachePolicy
    ) -> ReuseDecision {
        self.decision(metadata.response?.freshness, of: request, under: policy)
    }

    /// The same for an entry of which this is known.
    func decision(_ freshness: Freshness?, of request: ImageRequest, under policy: CachePolicy) -> ReuseDecision {
        ReuseDecision(freshness, policy: policy, headers: request.headers, now: self.now())
    }
}

extension ReuseDecision {
    /// Decides about a stored response that a request selects, by the policy of its load.
    ///
    /// The `Cache-Control` of the request's own `headers` is honoured where HTTP's freshness counts.
    init(_ freshness: Freshness?, policy: CachePolicy, headers: HeaderFields, now: Date) {
        switch policy {
        case .neverRevalidate, .cacheOnly: self = .serve
        case .honorFreshness: self.init(freshness, headers: headers, now: now)
        case .reload: self = .revalidate
        case .revalidate:
            let isPromised = freshness?.flags.contains(.immutable) ?? false
            let isServed = isPromised && ReuseDecision(freshness, headers: headers, now: now) == .serve
            self = isServed ? .serve : .revalidate
        }
    }
}

extension Validators {
    /// The validators of what is stored; entries of older versions have them as well.
    init(_ metadata: EntryMetadata) {
        self.init(
            etag: metadata.response?.fields["ETag"] ?? metadata.etag,
            lastModified: metadata.response?.fields["Last-Modified"] ?? metadata.lastModified
        )
    }
}

extension Precondition {
    /// Whether what is stored tells the caller that its own copy is current.
    static func isNotModified(_ headers: HeaderFields, stored metadata: EntryMetadata, now: Date) -> Bool {
        let date = metadata.response?.fields["Date"].flatMap { HTTPDate.parse($0, now: now) }
        return self.isNotModified(
            headers,
            stored: Validators(metadata),
            storedDate: date ?? metadata.response?.responseDate ?? metadata.responseDate,
            now: now
        )
    }
}
