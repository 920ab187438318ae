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
            if self.shard(name) != nil { isFound = true }
        }
        return isFound
    }

    /// The names of its folders of entries.
    static func shardNames(in folder: CInt) -> [String] {
        var names: [String] = []
        try? Folder.forEachName(at: ".", in: folder) { name, _ in
            if self.shard(name) != nil { names.append(String(decoding: name, as: UTF8.self)) }
        }
        return names
    }

    private static func shard(_ name: UnsafeBufferPointer<UInt8>) -> UInt8? {
        guard name.count == 2, let high = KeyDigest.value(of: name[0]), let low = KeyDigest.value(of: name[1]) else {
            return nil
        }
        return high << 4 | low
    }
}
