// SPDX-License-Identifier: Apache-2.0

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

    /// The configuration of a disk tier: its folder and its limits.
    public struct Configuration: Sendable {
        /// The folder, which the first store creates with access for this user only.
        public var directory: URL
        /// The name of a separate cache with its own limits inside the folder; by default `nil`, the folder itself.
        public var namespace: String?
        /// The folders of other caches, for entries that are not in this one; by default none.
        ///
        /// The cache only reads them. It neither removes entries nor records uses there.
        public var readOnlyDirectories: [URL]
        /// The age at which an entry becomes a miss, or `nil` for no limit; by default seven days.
        public var maximumAge: Duration?
        /// The maximum bytes of all files in the folder together, or `Int.max` for no limit; by default 1 GiB.
        ///
        /// The limit holds during writes, even if several processes with the same limit write. The catalogue counts as
        /// well: 4 KiB in a small cache, or 5 % with entries of 1 KB. Below a limit of 64 KiB only the entries count.
        public var sizeLimit: Int
        /// The event from which the age of an entry counts; by default its last use.
        public var expiry: Expiry
        /// The number of threads that read and write, at least 1; by default 2.
        ///
        /// Each key belongs to one of them.
        public var laneCount: Int
        /// The maximum bytes of background stores that wait in memory, including metadata and long keys.
        ///
        /// By default a sixteenth of the memory that the process may use, and at most 64 MiB.
        public var pendingByteLimit: Int
        /// The longest time that a change waits for the folder's lock, which a stopped process may hold; by default 1
        /// second.
        ///
        /// After that the change fails with ``TintypeErrorCode/lockTimedOut``. Look-ups wait only while the folder is
        /// being opened.
        public var lockTimeout: Duration
        /// The clock for ages.
        public var now: @Sendable () -> Date
        /// A function that receives the errors of background stores.
        ///
        /// The cache calls it on one of its threads, or on the storing thread if too many bytes wait. It also receives
        /// ``TintypeErrorCode/cacheNotPrivate`` once if other users can change the folder.
        public var storeErrorHandler: (@Sendable (CacheError) -> Void)?
        /// A function that pauses a thread of the cache while it waits for other processes.
        var sleep: @Sendable (Duration) -> Void = Patience.sleep

        /// Creates a configuration.
        ///
        /// ```swift
        /// let configuration = DiskCache.Configuration(
        ///     directory: URL(filePath: "/var/cache/images"),
        ///     maximumAge: .seconds(30 * 86_400),
        ///     sizeLimit: 20 << 30
        /// )
        /// ```
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

        /// A sixteenth of the memory that the process may use, and at most 64 MiB; computed once.
        public static let defaultPendingByteLimit = min(MemoryBudget().byteCount / 16, 64 << 20)

        /// The path of the cache's folder.
        var folderPath: String {
            let path = Self.path(of: self.directory)
            guard let namespace = self.namespace else { return path }
            return path + "/" + CacheFolder.namespacesName + "/" + Self.folderName(of: namespace)
        }

        /// Returns the path of a folder without a trailing slash.
        static func path(of directory: URL) -> String {
            var path = directory.absoluteURL.path(percentEncoded: false)
            while path.count > 1, path.hasSuffix("/") { path.removeLast() }
            return path
        }

        /// Returns a safe folder name for a namespace.
        ///
        /// Characters other than ASCII letters, digits, `_`, `-` and inner dots become `%` and two digits. A very long
        /// name becomes a digest.
        static func folderName(of namespace: String) -> String {
            // Every other "%" precedes two digits, so this name differs from all short ones.
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

        /// The default folder: `$XDG_CACHE_HOME/tintype`, or `$HOME/.cache/tintype` if that is not set.
        ///
        /// Without `HOME` it is in the home folder of the user's account.
        public static var defaultDirectory: URL {
            self.defaultDirectory(
                cacheHome: getenv("XDG_CACHE_HOME").map { String(cString: $0) },
                home: getenv("HOME").map { String(cString: $0) },
                accountHome: URL.homeDirectory
            )
        }

        /// Returns the default folder for an environment.
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
