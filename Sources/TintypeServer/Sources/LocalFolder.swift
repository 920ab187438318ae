// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc
import Tintype

/// An open folder, below which files are opened without following links.
///
/// It stays the same folder even if another one takes its place in the file system.
final class LocalFolder: Sendable {
    private let descriptor: CInt

    init(path: String) throws(DownloadError) {
        guard !path.utf8.contains(0) else { throw .folderNotOpened(path, EINVAL) }
        self.descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard self.descriptor >= 0 else { throw .folderNotOpened(path, errno) }
    }

    deinit {
        if self.descriptor >= 0 { close(self.descriptor) }
    }

    /// Opens an ordinary file; returns the descriptor, or -1 with `errno` set.
    ///
    /// `errno` is `ELOOP` for a link, `EISDIR` for a folder, and `ENXIO` for other files that are not ordinary.
    func open(_ path: LocalPath, flags: CInt) -> CInt {
        var descriptor = self.openAtOnce(path, flags: flags)
        if descriptor < 0, errno == ENOSYS || errno == EPERM { descriptor = self.openByNames(path, flags: flags) }
        var status = stat()
        if descriptor >= 0, fstat(descriptor, &status) != 0 || status.st_mode & S_IFMT != S_IFREG {
            close(descriptor)
            descriptor = -1
            errno = status.st_mode & S_IFMT == S_IFDIR ? EISDIR : ENXIO
        }
        return descriptor
    }

    /// O_PATH, a constant of GNU that Swift does not import: needs no permission to list the folder.
    private static let pathOnly: CInt = 0o10000000

    private func openAtOnce(_ path: LocalPath, flags: CInt) -> CInt {
        Self.withCString(path.components.joined(separator: "/".utf8)) {
            cshims_open_beneath(self.descriptor, $0, flags)
        }
    }

    /// Opens the file without `openat2`: one name after the other, none of which may be a link.
    func openByNames(_ path: LocalPath, flags: CInt) -> CInt {
        var folder = self.descriptor
        defer { if folder != self.descriptor { close(folder) } }
        for name in path.components.dropLast() {
            let next = Self.withCString(name) {
                openat(folder, $0, Self.pathOnly | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            }
            let code = next < 0 && errno == ENOTDIR && Self.isLink(name, in: folder) ? ELOOP : errno
            if folder != self.descriptor { close(folder) }
            folder = self.descriptor
            guard next >= 0 else {
                errno = code
                return -1
            }
            folder = next
        }
        return Self.withCString(path.components.last ?? []) { openat(folder, $0, flags | O_NOFOLLOW) }
    }

    private static func isLink(_ name: [UInt8], in folder: CInt) -> Bool {
        var status = stat()
        let result = Self.withCString(name) { fstatat(folder, $0, &status, AT_SYMLINK_NOFOLLOW) }
        return result == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    private static func withCString(_ bytes: some Sequence<UInt8>, _ body: (UnsafePointer<CChar>) -> CInt) -> CInt {
        let text = bytes.map { CChar(bitPattern: $0) } + [0]
        return text.withUnsafeBufferPointer { $0.baseAddress.map(body) ?? -1 }
    }
}

extension DownloadError {
    fileprivate static func folderNotOpened(_ path: String, _ code: CInt) -> DownloadError {
        DownloadError(
            code: .fileUnreadable,
            message: "The folder \(path) of local sources cannot be opened: \(String(cString: strerror(code))). "
                + "Check --local-root and the permissions of the folder."
        )
    }
}
