public import FoundationEssentials
import Glibc

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
        /// The age from which on an entry is a miss, or `nil` for none.
        public var maximumAge: Duration?
        /// The bytes that the entry files may take together; `Int.max` for no limit.
        public var sizeLimit: Int
        /// What the age counts from.
        public var expiry: Expiry
        /// The threads that read and write, at least 1.
        ///
        /// A key is always served by the same one.
        public var laneCount: Int
        /// The bytes that may wait in memory for a store in the background.
        public var pendingByteLimit: Int
        /// The clock that ages are worked out with.
        public var now: @Sendable () -> Date
        /// Called with the error of a store in the background: on one of the cache's threads, or on
        /// the storing thread when too many bytes wait already.
        public var storeErrorHandler: (@Sendable (CacheError) -> Void)?

        /// Creates a configuration.
        public init(
            directory: URL = Configuration.defaultDirectory,
            maximumAge: Duration? = .seconds(7 * 24 * 60 * 60),
            sizeLimit: Int = 1 << 30,
            expiry: Expiry = .access,
            laneCount: Int = 2,
            pendingByteLimit: Int = 64 << 20,
            now: @escaping @Sendable () -> Date = { Date() },
            storeErrorHandler: (@Sendable (CacheError) -> Void)? = nil
        ) {
            self.directory = directory
            self.maximumAge = maximumAge
            self.sizeLimit = sizeLimit
            self.expiry = expiry
            self.laneCount = laneCount
            self.pendingByteLimit = pendingByteLimit
            self.now = now
            self.storeErrorHandler = storeErrorHandler
        }

        /// `$XDG_CACHE_HOME/tintype`, or `~/.cache/tintype` where that is not set.
        public static var defaultDirectory: URL {
            self.defaultDirectory(
                cacheHome: getenv("XDG_CACHE_HOME").map { String(cString: $0) },
                home: URL.homeDirectory
            )
        }

        /// The default folder for an environment.
        ///
        /// The XDG specification says to ignore a path that is not absolute.
        static func defaultDirectory(cacheHome: String?, home: URL) -> URL {
            if let cacheHome, cacheHome.hasPrefix("/") {
                return URL(filePath: cacheHome, directoryHint: .isDirectory).appending(path: "tintype")
            }
            return home.appending(path: ".cache").appending(path: "tintype")
        }
    }
}
