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

    /// Whether it is a folder of entries and of nothing else: one that a user made, such as `de`, is not ours.
    private static func isShard(_ name: UnsafeBufferPointer<UInt8>, in folder: CInt) -> Bool {
        guard name.count == 2, name.allSatisfy({ KeyDigest.value(of: $0) != nil }) else { return false }
        var (entries, others) = (0, 0)
        try? Folder.forEachName(at: String(decoding: name, as: UTF8.self), in: folder) { name, _ in
            if name.count == 1 && name[0] == UInt8(ascii: ".") { return }
            if name.count == 2 && name.allSatisfy({ $0 == UInt8(ascii: ".") }) { return }
            if name.count == 64, name.allSatisfy({ KeyDigest.value(of: $0) != nil }) {
                entries += 1
            } else {
                others += 1
            }
        }
        return entries > 0 && others == 0
    }
}
