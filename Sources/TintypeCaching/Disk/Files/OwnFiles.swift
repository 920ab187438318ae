import Glibc

/// What the cache has written itself, and may remove: a folder may have been chosen that is used for other things.
///
/// The name tells, and that it is a regular file; where a name could well be another's, the first bytes as well.
/// Whatever else is there stays: folders, links, pipes, files of other names.
enum OwnFiles {
    // MARK: Names

    /// Digits that stand for one writer.
    static func randomDigits() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: self.randomDigitCount - digits.count) + digits
    }

    private static let randomDigitCount = 16

    /// Whether it is the name of a folder of entries: two digits.
    static func isShard(_ name: String) -> Bool { self.isDigits(name, 2) }

    /// Whether it is the name of an entry in such a folder.
    static func isEntry(_ name: String) -> Bool {
        self.isDigits(name, EntryName.digitCount - 2)
    }

    /// Whether it is the name of a folder of what was cleared.
    static func isDiscarded(_ name: String) -> Bool { self.isDigits(name, self.randomDigitCount) }

    /// The number of the cache that made a temporary file of this name; `nil` where none can have.
    static func temporaryOwner(_ name: String) -> Int? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, let owner = Int(parts[0]), (0..<CatalogueLayout.ownerCount).contains(owner),
            "\(owner)" == parts[0], self.isDigits(parts[1], self.randomDigitCount), self.isNumber(parts[2])
        else { return nil }
        return owner
    }

    private static func isDigits(_ name: String, _ count: Int) -> Bool {
        name.utf8.count == count && name.utf8.allSatisfy { KeyDigest.value(of: $0) != nil }
    }

    private static func isNumber(_ text: String) -> Bool {
        (1...19).contains(text.utf8.count)
            && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    // MARK: Kinds

    /// What lies at a path, without following a link.
    enum Kind {
        case regular(byteCount: Int)
        case folder
        case other
        case missing
    }

    /// What lies at `path`, which starts at the open folder; something that can't be looked at is `other`.
    static func kind(of path: UnsafePointer<CChar>, in folder: CInt) -> Kind {
        var status = stat()
        guard fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            return errno == ENOENT || errno == ENOTDIR ? .missing : .other
        }
        return switch status.st_mode & S_IFMT {
        case S_IFREG: .regular(byteCount: Int(status.st_size))
        case S_IFDIR: .folder
        default: .other
        }
    }

    static func isRegular(_ path: UnsafePointer<CChar>, in folder: CInt = AT_FDCWD) -> Bool {
        if case .regular = self.kind(of: path, in: folder) { true } else { false }
    }

    static func isFolder(_ path: String, in folder: CInt = AT_FDCWD) -> Bool {
        if case .folder = self.kind(of: path, in: folder) { true } else { false }
    }

    /// Removes a regular file; says whether it did.
    static func remove(_ path: String, in folder: CInt = AT_FDCWD) -> Bool {
        self.isRegular(path, in: folder) && unlinkat(folder, path, 0) == 0
    }

    // MARK: First bytes

    /// Whether a file begins as an entry does, or as one that the disk has lost: empty, zeros, or some bits turned over.
    static func hasTraceOfEntry(_ path: UnsafePointer<CChar>, in folder: CInt = AT_FDCWD) -> Bool {
        self.firstBytes(of: path, in: folder).map { self.hasTrace($0, of: EntryHeader.magic) } ?? false
    }

    /// Whether what lies at a path is a catalogue, also one that was damaged, or nothing.
    static func mayReplaceCatalogue(_ path: String, in folder: CInt) -> Bool {
        switch self.kind(of: path, in: folder) {
        case .missing:
            return true
        case .folder, .other:
            return false
        case .regular(let byteCount):
            let magic = withUnsafeBytes(of: CatalogueLayout.magic) { Array($0) }
            if let bytes = self.firstBytes(of: path, in: folder) { return self.hasTrace(bytes, of: magic) }
            // That of another user of the folder: of whole pages, as every catalogue is.
            return errno == EACCES && byteCount.isMultiple(of: 4_096)
        }
    }

    /// Whether a file is the one that keeps the processes apart.
    static func isLockFile(_ path: String) -> Bool {
        guard let file = try? OpenFile(reading: path), let status = try? file.status(), status.isRegular,
            status.byteCount == FolderLock.byteCount
        else { return false }
        var bytes = [UInt8](repeating: 0, count: FolderLock.byteCount)
        let count = try? bytes.withUnsafeMutableBytes { buffer throws(SystemCallError) in try file.read(into: buffer) }
        return count == bytes.count && bytes == FolderLock.text
    }

    /// The first 64 bytes of a regular file, or as many as it has; `nil` with `errno` set where it can't be read.
    private static func firstBytes(of path: UnsafePointer<CChar>, in folder: CInt) -> [UInt8]? {
        guard self.isRegular(path, in: folder), let file = try? OpenFile(reading: path, in: folder) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try? bytes.withUnsafeMutableBytes { buffer throws(SystemCallError) in try file.read(into: buffer) }
        return count.map { Array(bytes.prefix($0)) }
    }

    private static func hasTrace(_ bytes: [UInt8], of magic: [UInt8]) -> Bool {
        if bytes.allSatisfy({ $0 == 0 }) { return true }
        guard bytes.count >= magic.count else { return magic.starts(with: bytes) }
        // By chance one in ten thousand million has so few bits wrong.
        return zip(bytes, magic).reduce(0) { $0 + ($1.0 ^ $1.1).nonzeroBitCount } <= 8
    }
}
