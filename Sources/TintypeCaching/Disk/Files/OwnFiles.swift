// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Recognises files that the cache has written and may remove, because the folder may have other uses as well.
///
/// The cache recognises a regular file by its name, and by its first bytes if the name could be another's. Everything
/// else stays: folders, links, pipes and files with other names.
enum OwnFiles {
    // MARK: Names

    /// Returns digits that identify one writer.
    static func randomDigits() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: self.randomDigitCount - digits.count) + digits
    }

    private static let randomDigitCount = 16

    /// Returns whether a name is that of an entry folder: two digits.
    static func isShard(_ name: String) -> Bool { self.isDigits(name, 2) }

    /// Returns whether a name is that of an entry in such a folder.
    static func isEntry(_ name: String) -> Bool {
        self.isDigits(name, EntryName.digitCount - 2)
    }

    /// Returns whether a name is that of a folder of discarded entries.
    static func isDiscarded(_ name: String) -> Bool { self.isDigits(name, self.randomDigitCount) }

    /// Returns the number of the cache that created a temporary file, or `nil` if the name is not one of a cache.
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

    /// The kind of object at a path, without following a link.
    enum Kind {
        case regular(byteCount: Int)
        case folder
        case other
        case missing
    }

    /// Returns the kind of object at `path`, relative to the open folder; `other` if that is unknown.
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

    /// Removes a regular file, and returns whether it did.
    static func remove(_ path: String) -> Bool {
        self.isRegular(path) && unlink(path) == 0
    }

    // MARK: First bytes

    /// Returns whether a file begins like an entry, even if the disk damaged it: empty, zeros, or some wrong bits.
    static func hasTraceOfEntry(_ path: UnsafePointer<CChar>, in folder: CInt = AT_FDCWD) -> Bool {
        self.firstBytes(of: path, in: folder).map { self.hasTrace($0, of: EntryHeader.magic) } ?? false
    }

    /// Returns whether the object at a path is a catalogue, even if damaged, or is missing.
    static func mayReplaceCatalogue(_ path: String, in folder: CInt) -> Bool {
        switch self.kind(of: path, in: folder) {
        case .missing:
            return true
        case .folder, .other:
            return false
        case .regular(let byteCount):
            let magic = withUnsafeBytes(of: CatalogueLayout.magic) { Array($0) }
            if let bytes = self.firstBytes(of: path, in: folder) { return self.hasTrace(bytes, of: magic) }
            // Assume that a catalogue of another user, which cannot be read, consists of whole pages.
            return errno == EACCES && byteCount.isMultiple(of: 4_096)
        }
    }

    /// Returns whether a file is the lock file of a cache folder.
    static func isLockFile(_ path: String) -> Bool {
        guard let file = try? OpenFile(reading: path), let status = try? file.status(), status.isRegular,
            status.byteCount == FolderLock.byteCount
        else { return false }
        var bytes = [UInt8](repeating: 0, count: FolderLock.byteCount)
        let count = try? bytes.withUnsafeMutableBytes { buffer throws(SystemCallError) in try file.read(into: buffer) }
        return count == bytes.count && bytes == FolderLock.text
    }

    /// Returns the first 64 bytes of a regular file, or fewer; `nil` with `errno` set if they cannot be read.
    private static func firstBytes(of path: UnsafePointer<CChar>, in folder: CInt) -> [UInt8]? {
        guard self.isRegular(path, in: folder), let file = try? OpenFile(reading: path, in: folder) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try? bytes.withUnsafeMutableBytes { buffer throws(SystemCallError) in try file.read(into: buffer) }
        return count.map { Array(bytes.prefix($0)) }
    }

    private static func hasTrace(_ bytes: [UInt8], of magic: [UInt8]) -> Bool {
        if bytes.allSatisfy({ $0 == 0 }) { return true }
        guard bytes.count >= magic.count else { return magic.starts(with: bytes) }
        // Random bytes have so few wrong bits with a probability of 3 in 10,000,000,000.
        return zip(bytes, magic).reduce(0) { $0 + ($1.0 ^ $1.1).nonzeroBitCount } <= 8
    }
}
