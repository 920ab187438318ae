/// What a reading of every entry found.
public struct VerifyResult: Sendable, Hashable {
    /// What is wrong with an entry.
    public enum Damage: Sendable, Hashable, CustomStringConvertible {
        /// It does not begin as an entry does, or is shorter or longer than it says.
        case header
        /// Its bytes are not those that were stored.
        case checksum
        /// Its key is not the one that its name stands for.
        case name
        /// It is a folder, a link or something else that is no file.
        case notAFile
        /// The system could not read it.
        case unreadable(SystemCallError)

        public var description: String {
            switch self {
            case .header: "It does not begin as an entry does, or has not the length that it says."
            case .checksum: "Its bytes are not those that were stored."
            case .name: "Its key is not the one that its name stands for."
            case .notAFile: "It is no regular file."
            case .unreadable(let error): "It could not be read (\(error))."
            }
        }
    }

    /// A damaged entry.
    public struct Finding: Sendable, Hashable {
        /// The path of its file.
        public let path: String
        /// The bytes of its file.
        public let byteCount: Int
        /// What is wrong.
        public let damage: Damage
        /// Whether it was removed.
        public let isRemoved: Bool
    }

    /// The entries that were read, the damaged ones among them.
    public internal(set) var entryCount = 0
    /// The bytes that were read.
    public internal(set) var byteCount = 0
    /// The damaged entries.
    public internal(set) var findings: [Finding] = []
    /// Whether all was read: not when a folder could not be opened, or the cache was shut down meanwhile.
    public internal(set) var isComplete = true

    /// Creates the result of a reading that found nothing.
    public init() {}
}
