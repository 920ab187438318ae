// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// A small file system in memory, which only root may mount.
public struct SmallDisk {
    private struct MountError: Error {
        let code: CInt
    }

    /// Whether this process may mount a file system, which depends on the container and is tried once.
    public static let isPossible: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        return (try? Self(byteCount: 1 << 16, at: directory.path(of: "probe")).unmount()) != nil
    }()

    /// The path of the mount point.
    public let path: String

    /// Creates the folder and mounts the file system.
    public init(byteCount: Int, at path: String) throws {
        self.path = path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(byteCount)") == 0 else {
            throw MountError(code: errno)
        }
    }

    /// Removes the file system and all its files.
    public func unmount() {
        umount2(self.path, CInt(MNT_DETACH))
        rmdir(self.path)
    }
}
