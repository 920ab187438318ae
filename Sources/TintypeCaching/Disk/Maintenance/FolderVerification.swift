// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Reads and checks every entry completely, including expired ones.
struct FolderVerification {
    let store: EntryStore
    let isRemoving: Bool
    private(set) var result = VerifyResult()

    mutating func run() -> VerifyResult {
        let opened: CacheFolder?
        do throws(SystemCallError) {
            opened = try self.store.folders.open()
        } catch {
            // The entries cannot be reached, so the result is not complete.
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
            // The file was removed after its name was read.
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

/// The result of verifying every entry.
public struct VerifyResult: Sendable, Hashable {
    /// The kind of damage of an entry.
    public enum Damage: Sendable, Hashable, CustomStringConvertible {
        /// It does not begin like an entry, or its length differs from its header.
        case header
        /// Its bytes differ from the stored ones.
        case checksum
        /// Its key does not belong to its name.
        case name
        /// It is not a regular file, but a folder, a link or another object.
        case notAFile
        /// The system could not read it.
        case unreadable(SystemCallError)

        public var description: String {
            switch self {
            case .header: "The file has no header of an entry, or another length than its header says."
            case .checksum: "The bytes differ from the stored ones."
            case .name: "The key of the entry belongs to another file name."
            case .notAFile: "A folder, a link or another object is in the place of a file."
            case .unreadable(let error): "The system could not read the file (\(error))."
            }
        }
    }

    /// A damaged entry.
    public struct Finding: Sendable, Hashable {
        /// The path of the file.
        public let path: String
        /// The bytes of the file.
        public let byteCount: Int
        /// The kind of damage.
        public let damage: Damage
        /// Whether the file was removed.
        public let isRemoved: Bool
    }

    /// The number of entries that were read, including damaged ones.
    public internal(set) var entryCount = 0
    /// The number of bytes that were read.
    public internal(set) var byteCount = 0
    /// The damaged entries.
    public internal(set) var findings: [Finding] = []
    /// Whether every entry was read; `false` if a folder could not be opened, or the cache was shut down.
    public internal(set) var isComplete = true

    /// Creates an empty result.
    ///
    /// ```swift
    /// let result = VerifyResult()
    /// ```
    public init() {}
}
