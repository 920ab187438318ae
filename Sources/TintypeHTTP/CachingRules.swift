// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Which responses a cache may store (RFC 9111, 3).
package enum Storability {
    /// The statuses that may be stored without a word about freshness (RFC 9110, 15.1).
    private static let cacheableByDefault: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Whether the response of a GET without a range may be stored.
    package static func allows(_ record: ResponseRecord, requestHeaders: HeaderFields, isShared: Bool) -> Bool {
        let response = CacheControl(record.values(for: "Cache-Control"))
        let request = CacheControl(requestHeaders.values(for: "Cache-Control"))
        // A part is not the whole, and a 304 is no body.
        guard 200..<600 ~= record.status, record.status != 206, record.status != 304 else { return false }
        guard !request.has("no-store") else { return false }
        if response.has("must-understand") {
            // A cache that understands the status disregards `no-store` (RFC 9111, 5.2.2.3).
            guard self.cacheableByDefault.contains(record.status) else { return false }
        } else if response.has("no-store") {
            return false
        }
        if isShared {
            // Even one about some fields is obeyed as a whole.
            guard !response.has("private") else { return false }
            let isForAll = ["public", "s-maxage", "must-revalidate"].contains { response.has($0) }
            guard requestHeaders["Authorization"] == nil || isForAll else { return false }
        }
        let isExplicit =
            response.has("public") || response.has("max-age") || !record.values(for: "Expires").isEmpty
            || (isShared ? response.has("s-maxage") : response.has("private"))
        return isExplicit || self.cacheableByDefault.contains(record.status)
    }
}

/// The permitted use of a stored response (RFC 9111, 4).
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
        // Loads without HTTP's freshness may have stored a response that must not be stored.
        guard freshness.flags.isDisjoint(with: [.noCache, .noStore, .variesOnEverything]) else { return .revalidate }
        // The age of a response from the future is unknown: the clock was put back.
        guard now.timeIntervalSince(freshness.birth) >= -60 else { return .revalidate }
        // Most requests say nothing, and this is on the way to every image in memory.
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

/// The conditions that a caller put into its own request.
package enum Precondition {
    /// The fields that a cache cannot judge, so that it steps aside: parts, and conditions for changes.
    private static let opaque = ["Range", "If-Range", "If-Match", "If-Unmodified-Since"]

    /// Whether the request is one that a cache hands on, both ways, untouched.
    package static func bypassesCache(_ headers: HeaderFields) -> Bool {
        self.opaque.contains { headers[$0] != nil }
    }

    /// Whether the caller has a copy of its own and asks for news only.
    package static func isConditional(_ headers: HeaderFields) -> Bool {
        headers["If-None-Match"] != nil || headers["If-Modified-Since"] != nil
    }

    /// Returns whether a stored response tells the caller that its own copy is current (RFC 9111, 4.3.2).
    ///
    /// `storedDate` is the date of the stored response. It replaces a missing date of modification.
    package static func isNotModified(
        _ headers: HeaderFields,
        stored validators: Validators,
        storedDate: Date?,
        now: Date
    ) -> Bool {
        let tags = headers.values(for: "If-None-Match")
        // A tag takes precedence over a date (RFC 9110, 13.2.2).
        if !tags.isEmpty {
            let tags = FieldList.elements(of: tags)
            guard !tags.contains("*") else { return true }
            guard let own = validators.tag else { return false }
            return tags.contains { EntityTag($0).matchesWeakly(own) }
        }
        let changed = validators.lastModified.flatMap { HTTPDate.parse($0, now: now) } ?? storedDate
        guard let changed, let since = headers["If-Modified-Since"].flatMap({ HTTPDate.parse($0, now: now) })
        else { return false }
        return changed <= since
    }
}
