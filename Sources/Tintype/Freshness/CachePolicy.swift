/// When a load asks the origin whether what is cached is current.
public enum CachePolicy: Sendable, Hashable {
    /// Never: what is cached is served until it is evicted or its age limit is over.
    ///
    /// The known default of image loaders; the headers of responses decide nothing.
    case neverRevalidate
    /// When HTTP says so: RFC 9111 for a private cache, with RFC 5861 and RFC 8246, and without heuristics.
    ///
    /// What the origin gave no lifetime is stale from the start, and is asked for with its validators.
    case honorFreshness
    /// Always, unless the origin promised that a fresh picture is `immutable`.
    case alwaysRevalidate
}
