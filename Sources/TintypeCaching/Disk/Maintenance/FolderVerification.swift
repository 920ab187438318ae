import Glibc
import Synchronization

/// Reads every entry and checks it whole; one that is expired is read as well.
struct FolderVerification {
    let store: EntryStore
    let isRemoving: Bool
    private(set) var result = VerifyResult()

    mutating func run() -> VerifyResult {
        let opened: CacheFolder?
        do throws(SystemCallError) {
            opened = try self.store.folders.open()
        } catch {
            // Nothing is known of entries that can't be reached: that is no clean bill.
            self.result.isComplete = false
            return self.result
        }
        guard let folder = opened else { return self.result }
        for shard in UInt8.min...UInt8.max {
            var names: [EntryName] = []
            do throws(SystemCallError) {
                try Folder.forEachName(at: CacheFolder.shardPath(shard), in: folder.descriptor) { name, _ in
                    if let name = EntryName(shard: shard, fileName: name) { names.append(name) }
                }
            } catch {
                self.result.isComplete = false
            }
            for name in names.sorted(by: { ($0.high, $0.low) < ($1.high, $1.low) }) {
                if self.store.folders.closing.isSet {
                    self.result.isComplete = false
                    return self.result
                }
                self.verify(name, in: folder)
            }
        }
        return self.result
    }

    private mutating func verify(_ name: EntryName, in folder: CacheFolder) {
        let damage: VerifyResult.Damage?
        var (byteCount, number) = (0, UInt?.none)
        do throws(SystemCallError) {
            let file = try OpenFile(reading: name, in: folder)
            let status = try file.status()
            (byteCount, number) = (status.byteCount, status.number)
            if status.isRegular {
                let (found, flaw) = try EntryBuffer.verify(file, byteCount)
                damage = flaw ?? (found == name ? nil : .name)
            } else {
                damage = .notAFile
            }
        } catch {
            // Removed since its name was read.
            if error.meansMissing { return }
            damage = error.number == ELOOP ? .notAFile : .unreadable(error)
        }
        self.result.entryCount += 1
        self.result.byteCount += byteCount
        guard let damage else { return }
        self.store.counters.damagedEntries.add(1, ordering: .relaxed)
        self.result.findings.append(
            VerifyResult.Finding(
                path: self.store.folders.directory + "/" + name.path,
                byteCount: byteCount,
                damage: damage,
                isRemoved: self.isRemoving && folder.discard(name, number)
            )
        )
    }
}

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
