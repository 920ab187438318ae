import Glibc
import Synchronization

/// Reads every entry and checks it whole; one that is expired is read as well.
struct FolderVerification {
    private let folders: FolderHandle
    private let counters: DiskCounters
    private let isRemoving: Bool
    private var result = VerifyResult()

    init(removingDamaged isRemoving: Bool, _ folders: FolderHandle, _ counters: DiskCounters) {
        self.folders = folders
        self.counters = counters
        self.isRemoving = isRemoving
    }

    mutating func run() -> VerifyResult {
        let opened: CacheFolder?
        do throws(SystemCallError) {
            opened = try self.folders.open()
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
                if self.folders.isClosing {
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
        self.counters.damagedEntries.add(1, ordering: .relaxed)
        self.result.findings.append(
            VerifyResult.Finding(
                path: self.folders.directory + "/" + name.path,
                byteCount: byteCount,
                damage: damage,
                isRemoved: self.isRemoving && folder.discard(name, number)
            )
        )
    }
}
