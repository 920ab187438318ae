// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import Glibc

/// The lock file of a folder, whose bytes are locks between all caches in all processes.
///
/// A lock ends with its process in any case. Byte 0 guards the catalogue. Byte `n` is locked as long as the owner with
/// the number `n` lives. A forked child without `exec` shares the open file and its locks. So the cache releases locks
/// explicitly, which ends them for all processes that share them.
final class FolderLock: Sendable {
    static let fileName = "lock"

    /// The size of the file.
    static var byteCount: Int { self.text.count }

    /// An explanation for people who open the file.
    static let text = Array("This file keeps the processes that use the cache apart.\n".utf8)

    private let descriptor: CInt
    private let process = getpid()

    init(in folder: CInt) throws(SystemCallError) {
        var descriptor: CInt
        repeat {
            descriptor = openat(folder, Self.fileName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        } while descriptor < 0 && errno == EINTR
        guard descriptor >= 0 else { throw SystemCallError.last("open") }
        self.descriptor = descriptor
        var status = stat()
        if fstat(descriptor, &status) == 0, status.st_size == 0 {
            // On a full disk the file stays empty.
            _ = Self.text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        }
    }

    deinit {
        // A forked child must not release the locks of its parent.
        if self.process == getpid() { _ = cshims_unlock_all(self.descriptor) }
        close(self.descriptor)
    }

    /// Takes the lock on the catalogue, unless another process has it.
    ///
    /// If the file system does not support locks, it always succeeds, and only the checksums protect the catalogue.
    func tryLock() -> Bool {
        if cshims_lock_byte(self.descriptor, 0, CInt(CSHIMS_LOCK_TRY)) == 0 { return true }
        return errno != EAGAIN && errno != EACCES
    }

    func unlock() {
        _ = cshims_lock_byte(self.descriptor, 0, CInt(CSHIMS_LOCK_NONE))
    }

    /// Takes the number of an owner, unless a living process has it.
    func tryOwner(_ number: Int) -> Bool {
        cshims_lock_byte(self.descriptor, number, CInt(CSHIMS_LOCK_TRY)) == 0
    }

    func releaseOwner(_ number: Int) {
        _ = cshims_lock_byte(self.descriptor, number, CInt(CSHIMS_LOCK_NONE))
    }
}
