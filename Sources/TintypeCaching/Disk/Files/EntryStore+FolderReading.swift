import Glibc
import Synchronization

/// Comparing the folder with the catalogue, where that may be wrong: after a power cut, or when it was
/// lost or damaged.
extension EntryStore {
    private struct Found {
        let name: EntryName
        let record: CatalogueRecord?
        let byteCount: Int
        /// Which file it is.
        let number: UInt
    }

    /// Reads the names of all entries, takes up those that are not known, and forgets those that are gone.
    ///
    /// When it is checking, it also looks at the first bytes of those that are known.
    func readFolder(_ folder: CacheFolder, isChecking: Bool, _ result: inout PruneResult) {
        for shard in UInt8.min...UInt8.max {
            if self.isClosing { return }
            self.readShard(shard, in: folder, isChecking: isChecking, &result)
        }
        try? folder.withCatalogue { catalogue, _ throws(SystemCallError) in
            // Slots that say nothing: a new table without them.
            if catalogue.region.countEntries() > 0 { try catalogue.dropDamaged() }
            catalogue.region.flags.insert(.isComplete)
            catalogue.region.flags.remove(.needsReading)
        }
    }

    private func readShard(
        _ shard: UInt8,
        in folder: CacheFolder,
        isChecking: Bool,
        _ result: inout PruneResult
    ) {
        let path = Self.shardPath(shard)
        let region = folder.region
        var present = Set<EntryName>()
        var unknown: [Found] = []
        do {
            try Folder.forEachName(at: path, in: folder.descriptor) { name, descriptor in
                guard let entry = EntryName(shard: shard, fileName: name), let address = name.baseAddress else {
                    return
                }
                present.insert(entry)
                let isKnown = if case .found = region.find(entry) { true } else { false }
                if isKnown, !isChecking { return }
                // The same bytes, as characters of C.
                let path = UnsafeRawPointer(address).assumingMemoryBound(to: CChar.self)
                guard let found = self.look(at: path, of: entry, in: descriptor) else { return }
                if !isKnown || found.record == nil { unknown.append(found) }
            }
        } catch {
            // A shard that can't be read is one whose entries can't be used either.
            return
        }
        self.takeUp(unknown, in: folder, &result)
        self.forget(shard, except: present, in: folder)
    }

    /// What a file says of itself.
    private func look(at path: UnsafePointer<CChar>, of name: EntryName, in descriptor: CInt) -> Found? {
        guard let (header, status) = try? self.header(at: path, in: descriptor) else { return nil }
        let record = header.map { header in
            CatalogueRecord(
                name: name,
                byteCount: status.byteCount,
                usedAt: status.modifiedAt,
                storedAt: header.storedAt,
                expiresAt: header.expiresAt
            )
        }
        return Found(name: name, record: record, byteCount: status.byteCount, number: status.number)
    }

    private func takeUp(_ unknown: [Found], in folder: CacheFolder, _ result: inout PruneResult) {
        for start in stride(from: 0, to: unknown.count, by: 64) {
            try? folder.withCatalogue { catalogue, _ throws(SystemCallError) in
                for found in unknown[start..<min(start + 64, unknown.count)] {
                    if let record = found.record {
                        guard catalogue.record(of: found.name) == nil else { continue }
                        try catalogue.put(record)
                        // Gone, or of another size, since it was looked at.
                        catalogue.settle(found.name)
                    } else if self.number(of: found.name, in: folder) == found.number,
                        try self.unlinkOwn(found.name, catalogue)
                    {
                        result.damagedEntries += 1
                        result.freedByteCount += found.byteCount
                        self.counters.damagedEntries.add(1, ordering: .relaxed)
                    }
                }
            }
        }
    }

    /// Forgets the entries of a shard that have no file.
    private func forget(_ shard: UInt8, except present: Set<EntryName>, in folder: CacheFolder) {
        let region = folder.region
        let first = region.home(of: EntryName(high: UInt64(shard) << 56, low: 0))
        let last = region.home(of: EntryName(high: UInt64(shard) << 56 | (1 << 56 - 1), low: 0))
        // A search may have gone on past its home.
        let slots = first..<min(region.slotCount, last + 257)
        var missing: [EntryName] = []
        _ = region.forEachRecord(in: slots) { record in
            if record.name.shard == shard, !present.contains(record.name) { missing.append(record.name) }
        }
        guard !missing.isEmpty else { return }
        try? folder.withCatalogue { catalogue, _ in
            for name in missing { catalogue.settle(name) }
        }
    }

    /// Moves a file of the folder's file system to the place of an entry, unless there is one.
    ///
    /// The path starts at the folder, or is absolute.
    ///
    /// - Returns: The bytes that were moved or were there already; `nil` when it is no entry or can't be moved.
    func adopt(_ path: String, as name: EntryName, in folder: CacheFolder) -> Int? {
        guard let found = self.look(at: path, of: name, in: folder.descriptor), let record = found.record else {
            return nil
        }
        let isMoved = try? folder.withCatalogue { catalogue, _ throws(SystemCallError) -> Bool in
            guard catalogue.record(of: name) == nil else {
                return unlinkat(folder.descriptor, path, 0) == 0
            }
            try catalogue.moveIntoPlace(path, record)
            return true
        }
        return isMoved == true ? record.byteCount : nil
    }
}
