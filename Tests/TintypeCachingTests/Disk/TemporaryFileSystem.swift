// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// A small file system in memory, mounted for one test.
///
/// Creating one needs the right to mount.
final class TemporaryFileSystem: Sendable {
    private let folder: ScratchFolder

    /// Whether this process may mount file systems.
    static let isAvailable: Bool = (try? TemporaryFileSystem(byteCount: 1 << 16)) != nil

    /// Mounts a file system of so many bytes, optionally with a limited number of files and folders.
    init(byteCount: Int, inodeCount: Int? = nil) throws {
        self.folder = try ScratchFolder()
        let inodes = inodeCount.map { ",nr_inodes=\($0)" } ?? ""
        guard mount("tmpfs", self.folder.path, "tmpfs", 0, "size=\(byteCount),mode=700\(inodes)") == 0 else {
            throw ScratchFolderError()
        }
    }

    deinit {
        umount2(self.folder.path, 2)
    }

    var url: URL { self.folder.url }
    var path: String { self.folder.path }

    func files() -> [String] { self.folder.files() }

    /// Makes the file system read-only (`MS_REMOUNT | MS_RDONLY`).
    func makeReadOnly() throws {
        guard mount("tmpfs", self.folder.path, "tmpfs", 32 | 1, nil) == 0 else { throw ScratchFolderError() }
    }
}
