public import FoundationEssentials
import Glibc
import TintypeConcurrency

extension DiskCache {
    /// What an entry's age counts from.
    public enum Expiry: Sendable, Hashable {
        /// Its last use: a store or a hit.
        case access
        /// When its bytes were last stored.
        case modification
        /// When bytes were first stored under its key.
        case creation
    }

    /// Where a disk tier lies, and its limits.
    public struct Configuration: Sendable {
        /// The folder; it is made, readable for this user only, when something is stored.
        public var directory: URL
        /// The name of a cache of its own inside the folder, with limits of its own; `nil` for the folder
        /// itself.
        public var namespace: String?
        /// The folders of other caches, where an entry is looked for that is not in this one.
        ///
        /// They are only read: nothing is removed from them, and no use is recorded there.
        public var readOnlyDirectories: [URL]
        /// The age from which on an entry is a miss, or `nil` for none.
        public var maximumAge: Duration?
        /// The bytes that all files in the folder may take together; `Int.max` for no limit.
        ///
        /// It holds while writing, also when several processes write that have the same limit. The
        /// catalogue counts: 4 KiB in a small cache, 5 % of entries of 1 KB. Below a limit of 64 KiB only the
        /// entries count.
        public var sizeLimit: Int
        /// What the age counts from.
        public var expiry: Expiry
        /// The threads that read and write, at least 1.
        ///
        /// A key is always served by the same one.
        public var laneCount: Int
        /// The bytes that may wait in memory for a store in the background, metadata and long keys included; default a
        /// sixteenth of the memory that the process may use, at most 64 MiB.
        public var pendingByteLimit: Int
        /// How long a change waits for another process that has the folder's lock, and may have been stopped.
        ///
        /// Then it fails with ``CacheError/Code/lockTimedOut``. Look-ups do not wait, but for the opening of the
        /// folder.
        public var lockTimeout: Duration
        /// The clock that ages are worked out with.
        public var now: @Sendable () -> Date
        /// Called with the error of a store in the background: on one of the cache's threads, or on
        /// the storing thread when too many bytes wait already.
        ///
        /// Also called once with ``CacheError/Code/notPrivate`` if other users may change the folder.
        public var storeErrorHandler: (@Sendable (CacheError) -> Void)?
        /// Lets a thread of the cache sleep while it waits for others.
        var sleep: @Sendable (Duration) -> Void = Patience.sleep

        /// Creates a configuration.
        public init(
            directory: URL = Configuration.defaultDirectory,
            namespace: String? = nil,
            readOnlyDirectories: [URL] = [],
            maximumAge: Duration? = .seconds(7 * 24 * 60 * 60),
            sizeLimit: Int = 1 << 30,
            expiry: Expiry = .access,
            laneCount: Int = 2,
            pendingByteLimit: Int = Configuration.defaultPendingByteLimit,
            lockTimeout: Duration = .seconds(1),
            now: @escaping @Sendable () -> Date = { Date() },
            storeErrorHandler: (@Sendable (CacheError) -> Void)? = nil
        ) {
            self.directory = directory
            self.namespace = namespace
            self.readOnlyDirectories = readOnlyDirectories
            self.maximumAge = maximumAge
            self.sizeLimit = sizeLimit
            self.expiry = expiry
            self.laneCount = laneCount
            self.pendingByteLimit = pendingByteLimit
            self.lockTimeout = lockTimeout
            self.now = now
            self.storeErrorHandler = storeErrorHandler
        }

        /// A sixteenth of the memory that the process may use, at most 64 MiB; worked out once.
        public static let defaultPendingByteLimit = min(MemoryBudget().byteCount / 16, 64 << 20)

        /// The path of the folder that the cache works in.
        var folderPath: String {
            let path = Self.path(of: self.directory)
            guard let namespace = self.namespace else { return path }
            return path + "/" + CacheFolder.namespacesName + "/" + Self.folderName(of: namespace)
        }

        /// The path of a folder, without a slash at its end.
        static func path(of directory: URL) -> String {
            var path = directory.absoluteURL.path(percentEncoded: false)
            while path.count > 1, path.hasSuffix("/") { path.removeLast() }
            return path
        }

        /// A name that is safe for a folder: what is not a letter of ASCII, a digit, `_`, `-` or a dot
        /// inside is written as `%` and two digits; a very long one is a digest.
        static func folderName(of namespace: String) -> String {
            // Two digits follow every other "%", so that no short name can be the same.
            guard (1...80).contains(namespace.utf8.count) else { return "%-" + CacheKey(namespace).digest }
            return namespace.utf8.enumerated().reduce(into: "") { name, next in
                let character = Character(UnicodeScalar(next.element))
                let isSafe =
                    character.isASCII
                    && (character.isLetter || character.isNumber || character == "_" || character == "-")
                    || character == "." && next.offset > 0
                let digits = String(next.element, radix: 16)
                name += isSafe ? String(character) : "%" + (digits.count < 2 ? "0" : "") + digits
            }
        }

        /// `$XDG_CACHE_HOME/tintype`, or `$HOME/.cache/tintype` where that is not set.
        ///
        /// Without `HOME` the folder of the user's account counts.
        public static var defaultDirectory: URL {
            self.defaultDirectory(
                cacheHome: getenv("XDG_CACHE_HOME").map { String(cString: $0) },
                home: getenv("HOME").map { String(cString: $0) },
                accountHome: URL.homeDirectory
            )
        }

        /// The default folder for an environment.
        ///
        /// The XDG specification says to ignore a path that is not absolute.
        static func defaultDirectory(cacheHome: String?, home: String?, accountHome: @autoclosure () -> URL) -> URL {
            if let cacheHome, cacheHome.hasPrefix("/") {
                return URL(filePath: cacheHome, directoryHint: .isDirectory).appending(path: "tintype")
            }
            let given = home.flatMap { $0.hasPrefix("/") ? URL(filePath: $0, directoryHint: .isDirectory) : nil }
            let home = given ?? accountHome()
            return home.appending(path: ".cache").appending(path: "tintype")
        }
    }
}
