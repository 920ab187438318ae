/// Why a cache could not do what it was asked.
///
/// A missing, expired or damaged entry is a miss and never an error.
public struct CacheError: Error, Sendable, CustomStringConvertible {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case noSpace
            case notWritable
            case notReadable
            case entryTooLarge
            case tooManyOpenFiles
            case tooManyThreads
            case tooManyPendingStores
            case outOfMemory
            case diskFault
            case lockTimedOut
            case notRemovable
            case catalogueUnusable
            case shutDown
            case unexpected
        }

        private let value: Value

        /// The stable name of the code.
        public var description: String { self.value.rawValue }

        /// The disk, or the quota of the user, is full (`ENOSPC`, `EDQUOT`).
        public static let noSpace = Code(value: .noSpace)
        /// The folder can't be written to (`EACCES`, `EPERM`, `EROFS`, `ENOTDIR` and their like).
        public static let notWritable = Code(value: .notWritable)
        /// An entry or the folder can't be read (`EACCES`, `EPERM`).
        public static let notReadable = Code(value: .notReadable)
        /// One entry is bigger than the whole size limit.
        public static let entryTooLarge = Code(value: .entryTooLarge)
        /// The process or the system has no file descriptor left (`EMFILE`, `ENFILE`).
        public static let tooManyOpenFiles = Code(value: .tooManyOpenFiles)
        /// The system refused the thread that reads and writes.
        public static let tooManyThreads = Code(value: .tooManyThreads)
        /// The disk is so slow that the stores which wait in memory have reached their limit.
        public static let tooManyPendingStores = Code(value: .tooManyPendingStores)
        /// There is no memory to read an entry into.
        public static let outOfMemory = Code(value: .outOfMemory)
        /// The disk failed to read or write (`EIO`).
        public static let diskFault = Code(value: .diskFault)
        /// Another process kept the folder's lock for longer than this one waits; it may have been stopped.
        public static let lockTimedOut = Code(value: .lockTimedOut)
        /// A file of the cache can't be deleted; its bytes go on counting towards the limit.
        public static let notRemovable = Code(value: .notRemovable)
        /// The catalogue of the folder can't be shared with other processes: each knows only what it does itself.
        public static let catalogueUnusable = Code(value: .catalogueUnusable)
        /// The cache was used after it was shut down.
        public static let shutDown = Code(value: .shutDown)
        /// A failure that has no code of its own; ``CacheError/underlyingError`` has the number.
        public static let unexpected = Code(value: .unexpected)
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in a full sentence.
    public let message: String
    /// The system call that failed, if one did.
    public let underlyingError: SystemCallError?

    /// Creates an error.
    public init(code: Code, message: String, underlyingError: SystemCallError? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }

    public var description: String {
        guard let underlyingError = self.underlyingError else { return "\(self.code): \(self.message)" }
        return "\(self.code): \(self.message) (\(underlyingError))"
    }
}
