// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Compares the folder with the catalogue after a power cut, or after the catalogue was lost or damaged.
struct FolderScan {
    private struct Found {
        let name: EntryName
        let record: CatalogueRecord?
        let byteCount: Int
        /// The inode number.
        let number: UInt
    }

    let folder: CacheFolder
    let store: EntryStore
    /// Whether to check the first bytes of known entries as well.
    let isChecking: Bool
    private(set) var result: PruneResult

    /// Reads the names of all entries, adds unknown ones to the catalogue, and removes records without a file.
    ///
    /// - Returns: Whether the catalogue knows all entries now; `false` if another catalogue replaced it meanwhile,
    ///   which knows only later entries.
    mutating func run() -> Bool {
        guard let lineage = try? self.folder.withCatalogue({ catalogue, _ in catalogue.region[.lineage] }) else {
            return false
        }
        // A record that lies in the slots of another shard, because of a damaged bit, would not be found below.
        if self.folder.region.hasMisplacedRecords {
            try? self.folder.withCatalogue { catalogue, _ throws(SystemCallError) in try catalogue.dropDamaged() }
        }
        for shard in UInt8.min...UInt8.max {
            if self.store.folders.closing.isSet { return false }
            self.readShard(shard)
        }
        let isDone = try? self.folder.withCatalogue { catalogue, _ throws(SystemCallError) in
            guard catalogue.region[.lineage] == lineage else { return false }
            // Replace a table with damaged slots by a new one without them.
            if catalogue.region.countEntries() > 0 { try catalogue.dropDamaged() }
            catalogue.region.flags.insert(.isComplete)
            catalogue.region.flags.remove(.needsReading)
            return true
        }
        return isDone ?? false
    }

    private mutating func readShard(_ shard: UInt8) {
        let region = self.folder.region
        let isChecking = self.isChecking
        var present = Set<EntryName>()
        var unknown: [Found] = []
        do {
            try Folder.forEachName(at: CacheFolder.shardPath(shard), in: self.folder.descriptor) { name, descriptor in
                guard let entry = EntryName(shard: shard, fileName: name), let address = name.baseAddress else {
                    return
                }
                present.insert(entry)
                let isKnown = if case .found = region.find(entry) { true } else { false }
                if isKnown, !isChecking { return }
                // Treat the same bytes as characters of C.
                let path = UnsafeRawPointer(address).assumingMemoryBound(to: CChar.self)
                guard let (header, status) = try? EntryHeader.read(at: path, in: descriptor) else { return }
                if isKnown, header != nil { return }
                let record = header.map { CatalogueRecord(entry, $0, status, usedAt: status.modifiedAt) }
                unknown.append(
                    Found(name: entry, record: record, byteCount: status.byteCount, number: status.number)
                )
            }
        } catch {
            // If a shard cannot be read, its entries cannot be used either.
            return
        }
        self.takeUp(unknown)
        self.forget(shard, except: present)
    }

    private mutating func takeUp(_ unknown: [Found]) {
        for start in stride(from: 0, to: unknown.count, by: 64) {
            let part = unknown[start..<min(start + 64, unknown.count)]
            try? self.folder.withCatalogue { catalogue, _ throws(SystemCallError) in
                for found in part {
                    if let record = found.record {
                        guard catalogue.record(of: found.name) == nil else { continue }
                        try catalogue.put(record)
                        // The file may be gone, or have another size, since it was read.
                        catalogue.settle(found.name)
                    } else if catalogue.folder.fileNumber(of: found.name) == found.number,
                        try catalogue.unlinkOwn(found.name)
                    {
                        self.result.damagedEntries += 1
                        self.result.freedByteCount += found.byteCount
                        self.store.counters.damagedEntries.add(1, ordering: .relaxed)
                    }
                }
            }
        }
    }

    /// Removes the records of a shard that have no file.
    private func forget(_ shard: UInt8, except present: Set<EntryName>) {
        let region = self.folder.region
        let first = region.home(of: EntryName(high: UInt64(shard) << 56, low: 0))
        let last = region.home(of: EntryName(high: UInt64(shard) << 56 | (1 << 56 - 1), low: 0))
        // Records may lie after their home slots.
        let slots = first..<min(region.slotCount, last + 257)
        var missing: [EntryName] = []
        _ = region.forEachRecord(in: slots) { record in
            if record.name.shard == shard, !present.contains(record.name) { missing.append(record.name) }
        }
        guard !missing.isEmpty else { return }
        try? self.folder.withCatalogue { catalogue, _ in
            for name in missing { catalogue.settle(name) }
        }
    }
}
