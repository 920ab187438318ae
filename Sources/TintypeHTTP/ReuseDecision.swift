package import FoundationEssentials

/// What may be done with a stored response (RFC 9111, 4).
package enum ReuseDecision: Sendable, Hashable {
    /// It answers the request.
    case serve
    /// It answers the request, stale, and the origin is asked meanwhile (RFC 5861, 3).
    case serveWhileRevalidating
    /// The origin is asked first.
    case revalidate

    /// Decides about a stored response that a request with these `headers` selects.
    ///
    /// `freshness` is `nil` when nothing is known of it.
    package init(_ freshness: Freshness?, headers: HeaderFields, now: Date) {
        self = Self.decision(freshness, headers, now)
    }

    private static func decision(_ freshness: Freshness?, _ headers: HeaderFields, _ now: Date) -> ReuseDecision {
        guard let freshness else { return .revalidate }
        // What must not be stored may have been, by loads without HTTP's freshness.
        guard freshness.flags.isDisjoint(with: [.noCache, .noStore, .variesOnEverything]) else { return .revalidate }
        // Of a response that comes from the future, by a clock that was put back since, the age is not known.
        guard now.timeIntervalSince(freshness.birth) >= -60 else { return .revalidate }
        // Most requests say nothing, and this is on the way to every picture in memory.
        if headers.isEmpty, freshness.isFresh(at: now) { return .serve }
        let request = CacheControl(headers.values(for: "Cache-Control"))
        guard !self.asksOrigin(request, headers) else { return .revalidate }
        let age = freshness.age(at: now)
        if let maximum = request.seconds("max-age"), age > maximum { return .revalidate }
        if let minimum = request.seconds("min-fresh"), freshness.lifetime - age < minimum { return .revalidate }
        if freshness.isFresh(at: now) { return .serve }
        guard !freshness.flags.contains(.mustRevalidate) else { return .revalidate }
        let staleness = freshness.staleness(at: now)
        if let maximum = request.maximumStaleness, staleness <= maximum { return .serve }
        return staleness < freshness.staleWhileRevalidate ? .serveWhileRevalidating : .revalidate
    }

    /// Whether a stale response may stand in for an origin that failed (RFC 5861, 4).
    package static func servesAfterFailure(_ freshness: Freshness?, headers: HeaderFields, now: Date) -> Bool {
        guard let freshness,
            freshness.flags.isDisjoint(with: [.noCache, .noStore, .mustRevalidate, .variesOnEverything])
        else { return false }
        let request = CacheControl(headers.values(for: "Cache-Control"))
        guard !self.asksOrigin(request, headers) else { return false }
        let limit = max(freshness.staleIfError, request.seconds("stale-if-error") ?? 0)
        return limit > 0 && freshness.staleness(at: now) < limit
    }

    /// Whether a request wants nothing that the origin has not confirmed; `Pragma` is for old clients.
    private static func asksOrigin(_ request: CacheControl, _ headers: HeaderFields) -> Bool {
        if request.has("no-cache") { return true }
        return request.directives.isEmpty && CacheControl(headers.values(for: "Pragma")).has("no-cache")
    }
}
