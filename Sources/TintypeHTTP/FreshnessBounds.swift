// SPDX-License-Identifier: Apache-2.0

/// The bounds of the lifetimes of responses, under policies that follow HTTP's freshness.
///
/// They never permit what an origin forbids: `no-store`, `no-cache` and `Vary: *` have no lifetime. They apply to new
/// responses. Stored responses keep the lifetimes with which they were stored.
public struct FreshnessBounds: Sendable, Hashable {
    /// The lifetime of a response with neither a lifetime nor a validator; default zero, with which each load downloads
    /// it again.
    ///
    /// RFC 9111 (4.2.2) leaves this to caches.
    public var defaultLifetime: Duration
    /// The lifetime of a response that has a validator but no lifetime; default zero, with which each load revalidates it.
    ///
    /// RFC 9111 (4.2.2) calls this heuristic freshness.
    public var heuristicLifetime: Duration
    /// The shortest lifetime, which overrides the origin's; default zero.
    public var minimumLifetime: Duration
    /// The longest lifetime, also of the default lifetime; `nil`, the default, is no limit.
    public var maximumLifetime: Duration?
    /// For how long after its lifetime a response may be served while the origin is asked, if the response does not say
    /// (RFC 5861, 3); default zero.
    public var staleWhileRevalidate: Duration
    /// For how long after its lifetime a response may be served if the origin fails, if the response does not say
    /// (RFC 5861, 4); default zero.
    public var staleIfError: Duration

    /// Creates bounds, by default without effect.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.cachePolicy = .honorFreshness
    /// configuration.freshnessBounds = FreshnessBounds(minimumLifetime: .seconds(60), maximumLifetime: .seconds(3_600))
    /// ```
    public init(
        defaultLifetime: Duration = .zero,
        heuristicLifetime: Duration = .zero,
        minimumLifetime: Duration = .zero,
        maximumLifetime: Duration? = nil,
        staleWhileRevalidate: Duration = .zero,
        staleIfError: Duration = .zero
    ) {
        self.defaultLifetime = defaultLifetime
        self.heuristicLifetime = heuristicLifetime
        self.minimumLifetime = minimumLifetime
        self.maximumLifetime = maximumLifetime
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
    }

    /// Returns the lifetime of a response within the bounds, in seconds.
    package func lifetime(of record: ResponseRecord) -> Double {
        var lifetime = record.freshness.lifetime
        if lifetime == 0, !Self.lifetimeNames.contains(where: { !record.values(for: $0).isEmpty }) {
            let hasValidator = Self.validatorNames.contains { !record.values(for: $0).isEmpty }
            lifetime = (hasValidator ? self.heuristicLifetime : self.defaultLifetime) / .seconds(1)
        }
        lifetime = max(lifetime, self.minimumLifetime / .seconds(1))
        return min(lifetime, self.maximumLifetime.map { max(0, $0 / .seconds(1)) } ?? .infinity)
    }

    private static let lifetimeNames = ["Cache-Control", "Expires"]
    private static let validatorNames = ["ETag", "Last-Modified"]
}
