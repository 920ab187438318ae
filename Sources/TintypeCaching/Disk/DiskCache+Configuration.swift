public import FoundationEssentials
import Glibc
import TintypeConcurrency

extension DiskCache {
    /// The event from which the age of an entry counts.
    public enum Expiry: Sendable, Hashable {
        /// Its last use: a store or a hit.
        case access
        /// The last store of its bytes.
        case modification
        /// The first store under its key.
        case creation
    }

    /// The folder of a disk tier, and its limits.
    public struct Configuration: Sendable {
        /// The folder.
        ///
        /// The first store creates it, readable only for this user.
        public var directory: URL
        /// The name of a cache of its own inside the folder, with limits of its own; `nil` for the folder
        /// itself.
        public var namespace: String?
        /// The folders of other caches, for entries that are not in this one.
        ///
        /// The cache only reads them: it neither removes entries nor records uses there.
        public var readOnlyDirectories: [URL]
        /// The age at which an entry becomes a miss, or `nil` for none.
        public var maximumAge: Duration?
        /// The most bytes of all files in the folder together; `Int.max` for no limit.
        ///
        /// The limit applies during writes, also if several processes with the same limit write. The catalogue counts:
        /// 4 KiB in a small cache, 5 % of entries of 1 KB. Below a limit of 64 KiB only the entries count.
        public var sizeLimit: Int
        /// The event from which ages count.
        public var expiry: Expiry
        /// The number of threads that read and write, at least 1.
        ///
        /// Each key belongs to one of them.
        public var laneCount: Int
        /// The most bytes that wait in memory for background stores, including metadata and long keys; default a
        /// sixteenth of the memory that the process may use, at most 64 MiB.
        public var pendingByteLimit: Int
        /// The longest wait of a change for the folder's lock, which a stopped process may have.
        ///
        /// After that the change fails with ``CacheError/Code/lockTimedOut``. Look-ups wait only while the folder is
        /// opened.
        public var lockTimeout: Duration
        /// The clock for ages.
        public var now: @Sendable () -> Date
        /// Receives the error of a background store, on one of the cache's threads, or on the storing thread if too
        /// many bytes wait.
        ///
        /// It also receives ``CacheError/Code/notPrivate`` once if other users may change the folder.
        public var storeErrorHandler: (@Sendable (CacheError) -> Void)?
        /// Makes a thread of the cache sleep while it waits for others.
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

        /// A sixteenth of the memory that the process may use, at most 64 MiB; computed once.
        public static let defaultPendingByteLimit = min(MemoryBudget().byteCount / 16, 64 << 20)

        /// The path of the folder of the cache.
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

        /// Returns a safe name for a folder.
        ///
        /// Characters other than ASCII letters, digits, `_`, `-` and inner dots
        /// become `%` and two digits. A very long name becomes a digest.
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

        /// `$XDG_CACHE_HOME/tintype`, or `$HOME/.cache/tintype` if that is not set.
        ///
        /// Without `HOME` it is in the home folder of the user's account.
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
