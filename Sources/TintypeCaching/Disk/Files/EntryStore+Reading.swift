import FoundationEssentials
import Glibc

extension EntryStore {
    private enum Outcome {
        case hit(DiskEntry, byteCount: Int)
        case missing
        case expired
        case damaged
    }

    /// The entry of `key`, read, checked and marked as used.
    ///
    /// A missing, expired or damaged entry is `nil`, and the last two are removed.
    func read(_ key: CacheKey) throws(CacheError) -> DiskEntry? {
        let digest = KeyDigest(key)
        let now = self.now
        let outcome: Outcome
        do {
            outcome = try self.load(key, digest, now: now)
        } catch {
            guard Self.meansMissing(error) else {
                self.index.withLock { $0.counters.misses += 1 }
                throw CacheError.reading(error, in: self.directory)
            }
            outcome = .missing
        }
        switch outcome {
        case .hit(let entry, let byteCount):
            self.noteHit(digest, byteCount: byteCount, now: now)
            return entry
        case .missing:
            self.index.withLock { index in
                index.remove(digest)
                index.counters.misses += 1
            }
        case .expired:
            self.discard(digest) { $0.expiredEntries += 1 }
            self.index.withLock { $0.counters.misses += 1 }
        case .damaged:
            self.discard(digest) { $0.damagedEntries += 1 }
            self.index.withLock { $0.counters.misses += 1 }
        }
        return nil
    }

    /// Whether an entry of `key` is there and alive.
    ///
    /// Reads its header only, and is no use of it.
    func contains(_ key: CacheKey) -> Bool {
        guard let (header, status) = try? self.header(at: self.path(of: KeyDigest(key))), let header else {
            return false
        }
        return !self.isExpired(header, usedAt: status.modifiedAt, now: self.now)
    }

    /// The header of the entry file at `path`; `nil` when the file is none.
    func header(at path: String) throws(SystemCallError) -> (EntryHeader?, OpenFile.Status) {
        let file = try OpenFile(reading: path)
        let status = try file.status()
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return (nil, status) }
        var bytes = InlineArray<64, UInt8>(repeating: 0)
        let header = try withUnsafeMutableBytes(of: &bytes) { buffer throws(SystemCallError) -> EntryHeader? in
            guard try file.read(into: buffer) == buffer.count else { return nil }
            return EntryHeader(UnsafeRawBufferPointer(buffer), fileByteCount: status.byteCount)
        }
        return (header, status)
    }

    /// Whether `error` says that there is nothing at a path.
    static func meansMissing(_ error: SystemCallError) -> Bool {
        error.number == ENOENT || error.number == ENOTDIR
    }

    // MARK: Parts

    private func load(_ key: CacheKey, _ digest: KeyDigest, now: Double) throws(SystemCallError) -> Outcome {
        let file: OpenFile
        do {
            file = try OpenFile(reading: self.path(of: digest))
        } catch {
            // A symbolic link, which no cache makes.
            guard error.number == ELOOP else { throw error }
            return .damaged
        }
        let status = try file.status()
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return .damaged }
        // Of a process with a higher limit: not ours to read into memory.
        guard status.byteCount <= self.sizeLimit else { return .missing }
        guard let block = malloc(status.byteCount) else { throw SystemCallError(call: "malloc", number: ENOMEM) }
        let buffer = UnsafeMutableRawBufferPointer(start: block, count: status.byteCount)
        var isHandedOut = false
        defer { if !isHandedOut { free(block) } }

        guard try file.read(into: buffer) == buffer.count else { return .damaged }
        let bytes = UnsafeRawBufferPointer(buffer)
        guard let header = EntryHeader(bytes, fileByteCount: bytes.count), header.matches(bytes),
            let metadata = Self.metadata(in: bytes, header, of: key)
        else { return .damaged }
        guard !self.isExpired(header, usedAt: status.modifiedAt, now: now) else { return .expired }
        if abs(now - status.modifiedAt) >= self.useResolution {
            // A folder that can't be written to can still be read from.
            try? file.setModificationTime(now)
        }
        isHandedOut = true
        let data = Data(
            bytesNoCopy: block.advanced(by: header.bodyOffset),
            count: header.bodyByteCount,
            deallocator: .custom { _, _ in free(block) }
        )
        let entry = DiskEntry(data: data, metadata: metadata, storedAt: Date(timeIntervalSince1970: header.storedAt))
        return .hit(entry, byteCount: status.byteCount)
    }

    /// The metadata of an entry file, or `nil` when the file is of another key.
    private static func metadata(
        in file: UnsafeRawBufferPointer,
        _ header: EntryHeader,
        of key: CacheKey
    ) -> EntryMetadata? {
        let keyEnd = EntryHeader.byteCount + header.keyByteCount
        guard file[EntryHeader.byteCount..<keyEnd].elementsEqual(key.text.utf8) else { return nil }
        return EntryMetadata(encoded: UnsafeRawBufferPointer(rebasing: file[keyEnd..<header.bodyOffset]))
    }

    private func noteHit(_ digest: KeyDigest, byteCount: Int, now: Double) {
        let isKnown = self.index.withLock { index in
            index.counters.hits += 1
            return index.noteRead(digest, usedAt: now)
        }
        guard !isKnown else { return }
        // Another process stored it, or another lane evicted it after it was opened.
        self.withStripe(of: digest) {
            guard access(self.path(of: digest), F_OK) == 0 else { return }
            self.index.withLock { $0.noteUse(digest, byteCount: byteCount, usedAt: now) }
        }
    }
}
