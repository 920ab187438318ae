import CTintypeShims
import Glibc

/// The file whose bytes are locks between all caches that use a folder, in any process.
///
/// A lock ends with its process, however that ends. Byte 0 guards the catalogue; byte `n` is held
/// as long as the owner of the number `n` lives. A child that was forked and runs no other program shares the open
/// file, and with it the locks: they are given back in so many words, which ends them for all processes that share them.
final class FolderLock: Sendable {
    static let fileName = "lock"

    /// The bytes of the file.
    static var byteCount: Int { self.text.count }

    /// For a reader who wonders what the file is.
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
            // On a full disk it stays empty.
            _ = Self.text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        }
    }

    deinit {
        // A child that was forked lets go of a copy: what it shares is still its parent's.
        if self.process == getpid() { _ = cshims_unlock_all(self.descriptor) }
        close(self.descriptor)
    }

    /// Takes the lock on the catalogue, unless another has it.
    ///
    /// Where a file system has no locks, processes are not kept apart; the checksums still are.
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
