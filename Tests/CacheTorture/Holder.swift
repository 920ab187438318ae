// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeTestSupport

/// Takes the lock of a cache folder and stops, like a process in a debugger.
///
/// Ends when it continues.
struct Holder {
    let folder: String

    func run() throws {
        let descriptor = open(self.folder + "/lock", O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure("\(self.folder) has no lock: errno \(errno)") }
        defer { close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_len = 1
        // F_OFD_SETLK
        guard fcntl(descriptor, 37, &lock) == 0 else { throw Failure("the lock cannot be had: errno \(errno)") }
        raise(SIGSTOP)
    }

    /// Starts a process, which locks `folder` and is then stopped.
    ///
    /// Returns `nil` if another process has the lock, or the lock's file does not exist.
    static func start(_ folder: String) throws -> StoppedProcess? {
        let descriptor = open(folder + "/lock", O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_len = 1
        // F_OFD_GETLK
        guard fcntl(descriptor, 36, &lock) == 0, lock.l_type == Int16(F_UNLCK) else { return nil }
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return try StoppedProcess(program, ["holder", folder])
    }
}
