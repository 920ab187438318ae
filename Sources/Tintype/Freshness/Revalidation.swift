/// What became of a cached picture whose freshness was in question.
public enum Revalidation: Sendable, Hashable {
    /// The origin said that it is current, or sent the same bytes again: it was served, and lives on.
    case notModified
    /// The origin sent another one, which was served and took its place.
    case modified
    /// It was served stale, and the origin is asked in the background: `stale-while-revalidate`.
    case inBackground
    /// The origin failed, and it was served stale: `stale-if-error`.
    case failed
}
