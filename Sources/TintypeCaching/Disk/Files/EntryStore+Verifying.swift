import Glibc
import Synchronization

extension EntryStore {
    /// Reads every entry and checks it whole; one that is expired is read as well.
    func verify(isRemoving: Bool) -> VerifyResult {
        var result = VerifyResult()
        let opened: CacheFolder?
        do throws(SystemCallError) {
            opened = try self.openFolder()
        } catch {
            // Nothing is known of entries that can't be reached: that is no clean bill.
            result.isComplete = false
            return result
        }
        guard let folder = opened else { return result }
        for shard in UInt8.min...UInt8.max {
            let path = Self.shardPath(shard)
            var names: [String] = []
            do throws(SystemCallError) {
                try Folder.forEachName(at: path, in: folder.descriptor) { name, _ in
                    if EntryName(shard: shard, fileName: name) != nil {
                        names.append(String(decoding: name, as: UTF8.self))
                    }
                }
            } catch {
                result.isComplete = false
            }
            for name in names.sorted() {
                if self.isClosing {
                    result.isComplete = false
                    return result
                }
                var text = name
                guard let entry = text.withUTF8({ EntryName(shard: shard, fileName: $0) }) else { continue }
                self.verify(entry, in: folder, isRemoving, &result)
            }
        }
        return result
    }

    private func verify(
        _ name: EntryName,
        in folder: CacheFolder,
        _ isRemoving: Bool,
        _ result: inout VerifyResult
    ) {
        let damage: VerifyResult.Damage
        var (byteCount, number) = (0, UInt?.none)
        do throws(SystemCallError) {
            let file = try name.withPath { path throws(SystemCallError) -> OpenFile in
                try OpenFile(reading: path, in: folder.descriptor)
            }
            let status = try file.status()
            (byteCount, number) = (status.byteCount, status.number)
            guard let found = try self.damage(of: file, status, name) else {
                result.entryCount += 1
                result.byteCount += byteCount
                return
            }
            damage = found
        } catch {
            // Removed since its name was read.
            if Self.meansMissing(error) { return }
            damage = error.number == ELOOP ? .notAFile : .unreadable(error)
        }
        result.entryCount += 1
        result.byteCount += byteCount
        self.counters.damagedEntries.add(1, ordering: .relaxed)
        let isRemoved = isRemoving && self.removeDamaged(name, number, in: folder)
        let finding = VerifyResult.Finding(
            path: self.directory + "/" + name.path,
            byteCount: byteCount,
            damage: damage,
            isRemoved: isRemoved
        )
        result.findings.append(finding)
    }

    private func damage(
        of file: borrowing OpenFile,
        _ status: OpenFile.Status,
        _ name: EntryName
    ) throws(SystemCallError) -> VerifyResult.Damage? {
        guard status.isRegular else { return .notAFile }
        let buffer = try EntryBuffer(byteCount: status.byteCount)
        guard try file.read(into: buffer.bytes) == status.byteCount, status.byteCount >= EntryHeader.byteCount else {
            return .header
        }
        let bytes = UnsafeRawBufferPointer(buffer.bytes)
        guard let header = EntryHeader(bytes, fileByteCount: bytes.count) else { return .header }
        guard header.matches(bytes) else { return .checksum }
        let key = bytes[EntryHeader.byteCount..<EntryHeader.byteCount + header.keyByteCount]
        guard let text = String(validating: key, as: UTF8.self), EntryName(CacheKey(text)) == name else { return .name }
        return nil
    }

    private func removeDamaged(_ name: EntryName, _ number: UInt?, in folder: CacheFolder) -> Bool {
        if case .readOnly = folder.mode { return false }
        let isRemoved = try? folder.withCatalogue { catalogue, _ throws(SystemCallError) -> Bool in
            var status = stat()
            let isSame = name.withPath { path in
                fstatat(folder.descriptor, path, &status, AT_SYMLINK_NOFOLLOW) == 0
                    && (number == nil || number == UInt(status.st_ino))
            }
            guard isSame else { return false }
            return try self.unlinkOwn(name, catalogue)
        }
        return isRemoved ?? false
    }
}
