import Synchronization

/// Compares the folder with the catalogue, where that may be wrong: after a power cut, or when it was lost or damaged.
struct FolderScan {
    private struct Found {
        let name: EntryName
        let record: CatalogueRecord?
        let byteCount: Int
        /// Which file it is.
        let number: UInt
    }

    let folder: CacheFolder
    let store: EntryStore
    /// Whether it also looks at the first bytes of the entries that are known.
    let isChecking: Bool
    private(set) var result: PruneResult

    /// Reads the names of all entries, takes up those that are not known, and forgets those that are gone.
    ///
    /// - Returns: Whether the catalogue knows all entries now: not where it was lost meanwhile, and another one was made
    ///   that knows only what came since.
    mutating func run() -> Bool {
        guard let lineage = try? self.folder.withCatalogue({ catalogue, _ in catalogue.region[.lineage] }) else {
            return false
        }
        // Entries in a place that belongs to others, by a bit that turned over, would not be met with their shard's.
        if self.folder.region.hasMisplacedRecords {
            try? self.folder.withCatalogue { catalogue, _ throws(SystemCallError) in try catalogue.dropDamaged() }
        }
        for shard in UInt8.min...UInt8.max {
            if self.store.folders.closing.isSet { return false }
            self.readShard(shard)
        }
        let isDone = try? self.folder.withCatalogue { catalogue, _ throws(SystemCallError) in
            guard catalogue.region[.lineage] == lineage else { return false }
            // Slots that say nothing: a new table without them.
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
                // The same bytes, as characters of C.
                let path = UnsafeRawPointer(address).assumingMemoryBound(to: CChar.self)
                guard let (header, status) = try? EntryHeader.read(at: path, in: descriptor) else { return }
                if isKnown, header != nil { return }
                let record = header.map { CatalogueRecord(entry, $0, status, usedAt: status.modifiedAt) }
                unknown.append(
                    Found(name: entry, record: record, byteCount: status.byteCount, number: status.number)
                )
            }
        } catch {
            // A shard that can't be read is one whose entries can't be used either.
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
                        // Gone, or of another size, since it was looked at.
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

    /// Forgets the entries of a shard that have no file.
    private func forget(_ shard: UInt8, except present: Set<EntryName>) {
        let region = self.folder.region
        let first = region.home(of: EntryName(high: UInt64(shard) << 56, low: 0))
        let last = region.home(of: EntryName(high: UInt64(shard) << 56 | (1 << 56 - 1), low: 0))
        // A search may have gone on past its home.
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
