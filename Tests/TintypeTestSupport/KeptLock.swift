// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The lock of a cache folder, held as if by another process that makes no progress.
public final class KeptLock: Sendable {
    private let descriptor: CInt

    /// Takes the lock of the cache folder at `path`, and creates the folder if it does not exist.
    public init(of path: String) throws {
        mkdir(path, 0o700)
        self.descriptor = open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_len = 1
        // The command is F_OFD_SETLKW.
        guard self.descriptor >= 0, fcntl(self.descriptor, 38, &lock) == 0 else {
            throw TestSupportError("The lock of \(path) cannot be had: errno \(errno).")
        }
    }

    deinit {
        close(self.descriptor)
    }
}
