import FoundationEssentials
import Glibc

/// A small file system in memory; only root may mount one.
public struct SmallDisk {
    private struct MountError: Error {
        let code: CInt
    }

    /// Whether this process may mount; tried once, because containers differ.
    public static let isPossible: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        return (try? Self(byteCount: 1 << 16, at: directory.path(of: "probe")).unmount()) != nil
    }()

    /// Where it is mounted.
    public let path: String

    /// Mounts it; the folder is made.
    public init(byteCount: Int, at path: String) throws {
        self.path = path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(byteCount)") == 0 else {
            throw MountError(code: errno)
        }
    }

    /// Takes it away with all that is on it.
    public func unmount() {
        umount2(self.path, CInt(MNT_DETACH))
        rmdir(self.path)
    }
}
