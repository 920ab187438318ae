/// What became of a picture that was given to the memory tier.
public enum InsertOutcome: Sendable, Hashable {
    /// The picture is in the cache.
    case stored
    /// The picture is not in the cache, and neither is an older one under the same key.
    case refused(Refusal)

    /// Why a picture was not taken.
    public enum Refusal: Sendable, Hashable, CustomStringConvertible {
        /// The picture alone costs more than the whole cache may hold.
        case costOverLimit(cost: Int, limit: Int)
        /// The cache may hold no entry at all.
        case countLimitIsZero

        public var description: String {
            switch self {
            case .costOverLimit(let cost, let limit):
                "The picture costs \(cost) bytes and the memory cache may hold \(limit); raise its cost limit."
            case .countLimitIsZero:
                "The count limit of the memory cache is 0; raise it."
            }
        }
    }
}
