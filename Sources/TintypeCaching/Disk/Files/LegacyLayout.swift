import Glibc

/// The layout of the first version: `<folder>/ab/<64 digits>` and `<folder>/tmp`.
///
/// The entry files are the same, so they are moved.
enum LegacyLayout {
    static let temporaryName = "tmp"

    /// Whether there is anything of it in the open folder.
    static func isPresent(in folder: CInt) -> Bool {
        var isFound = false
        try? Folder.forEachName(at: ".", in: folder) { name, _ in
            if self.isShard(name, in: folder) { isFound = true }
        }
        return isFound
    }

    /// The names of its folders of entries.
    static func shardNames(in folder: CInt) -> [String] {
        var names: [String] = []
        try? Folder.forEachName(at: ".", in: folder) { name, _ in
            if self.isShard(name, in: folder) { names.append(String(decoding: name, as: UTF8.self)) }
        }
        return names
    }

    /// Removes the files that killed writers left behind; says how many.
    ///
    /// Many folders have a `tmp` of their own: the names and the first bytes tell.
    static func removeTemporaryFiles(in folder: CInt) -> Int {
        Folder.names(at: self.temporaryName, in: folder).count { name in
            let path = "\(self.temporaryName)/\(name)"
            return OwnFiles.isLegacyTemporary(name) && OwnFiles.hasTraceOfEntry(path, in: folder)
                && OwnFiles.remove(path, in: folder)
        }
    }

    /// Whether it is a folder of entries and of nothing else: one that a user made, such as `de`, is not ours, nor is
    /// one of another store of files that are called by their SHA-256, as backups have them.
    private static func isShard(_ name: UnsafeBufferPointer<UInt8>, in folder: CInt) -> Bool {
        guard name.count == 2, name.allSatisfy({ KeyDigest.value(of: $0) != nil }) else { return false }
        var (candidates, entries, others) = (0, 0, 0)
        try? Folder.forEachName(at: String(decoding: name, as: UTF8.self), in: folder) { name, shard in
            guard name.count == 64, name.allSatisfy({ KeyDigest.value(of: $0) != nil }), let address = name.baseAddress
            else { return others += 1 }
            candidates += 1
            // In a folder of entries nearly all are whole: the first few tell.
            guard entries == 0, candidates <= 16 else { return }
            // The same bytes, as characters of C.
            let path = UnsafeRawPointer(address).assumingMemoryBound(to: CChar.self)
            if OwnFiles.hasTraceOfEntry(path, in: shard) { entries += 1 }
        }
        return entries > 0 && others == 0
    }
}
