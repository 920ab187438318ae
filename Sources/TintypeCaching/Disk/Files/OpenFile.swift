import Glibc

/// A file descriptor, closed when its owner lets go of it.
struct OpenFile: ~Copyable {
    /// What a cache needs to know about a file.
    struct Status {
        let byteCount: Int
        let isRegular: Bool
        /// Whether the file still has a name.
        let hasName: Bool
        /// Seconds since 1970.
        let modifiedAt: Double

        init(_ status: stat) {
            self.byteCount = Int(status.st_size)
            self.isRegular = status.st_mode & S_IFMT == S_IFREG
            self.hasName = status.st_nlink > 0
            self.modifiedAt = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
        }
    }

    private let descriptor: CInt

    /// Opens `path` for reading.
    ///
    /// Follows no link and never waits for the writer of a pipe.
    init(reading path: String) throws(SystemCallError) {
        try self.init(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
    }

    /// Makes a file at `path`, where there is none, that only this user may read and write.
    init(creating path: String) throws(SystemCallError) {
        try self.init(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    }

    private init(_ path: String, _ flags: CInt, _ mode: mode_t) throws(SystemCallError) {
        var descriptor: CInt
        repeat { descriptor = open(path, flags | O_CLOEXEC, mode) } while descriptor < 0 && errno == EINTR
        guard descriptor >= 0 else { throw SystemCallError.last("open") }
        self.descriptor = descriptor
    }

    deinit {
        Glibc.close(self.descriptor)
    }

    /// Closes the file; what was written must have been checked before.
    consuming func close() {}

    /// Says whether all that was written was taken, and keeps the file open.
    ///
    /// On some file systems a full disk shows only when a descriptor is closed: a copy is closed.
    func checkWritten() throws(SystemCallError) {
        let copy = fcntl(self.descriptor, F_DUPFD_CLOEXEC, 0)
        // Without a descriptor to spare there is no early answer; the checksum finds what is missing.
        guard copy >= 0 else { return }
        // After EINTR the descriptor is closed as well; a second call could close another's.
        guard Glibc.close(copy) == 0 || errno == EINTR else { throw SystemCallError.last("close") }
    }

    func status() throws(SystemCallError) -> Status {
        var status = stat()
        guard fstat(self.descriptor, &status) == 0 else { throw SystemCallError.last("fstat") }
        return Status(status)
    }

    /// Reads from the start of the file until `buffer` is full or the file ends.
    ///
    /// - Returns: The bytes read.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemCallError) -> Int {
        var count = 0
        while count < buffer.count {
            let result = pread(self.descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count, count)
            if result < 0, errno == EINTR { continue }
            guard result >= 0 else { throw SystemCallError.last("read") }
            guard result > 0 else { break }
            count += result
        }
        return count
    }

    /// Writes `head` and then `body` to the start of the file.
    func write(_ head: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer) throws(SystemCallError) {
        var written = 0
        while written < head.count + body.count {
            let parts = [Self.rest(of: head, after: written), Self.rest(of: body, after: written - head.count)]
            let result = writev(self.descriptor, parts, CInt(parts.count))
            if result < 0, errno == EINTR { continue }
            guard result >= 0 else { throw SystemCallError.last("write") }
            written += result
        }
    }

    /// Sets the modification time to `seconds` since 1970, and leaves the access time to the system.
    func setModificationTime(_ seconds: Double) throws(SystemCallError) {
        let whole = seconds.rounded(.down)
        let times = [
            timespec(tv_sec: 0, tv_nsec: Self.omit),
            timespec(tv_sec: Int(whole), tv_nsec: Int((seconds - whole) * 1e9)),
        ]
        guard futimens(self.descriptor, times) == 0 else { throw SystemCallError.last("futimens") }
    }

    /// Takes the advisory lock of the file, unless someone has it.
    ///
    /// It ends with the file's last descriptor, so also with its process.
    func tryLock() -> Bool {
        flock(self.descriptor, LOCK_EX | LOCK_NB) == 0
    }

    /// `UTIME_OMIT`, whose definition Swift does not import.
    private static let omit = (1 << 30) - 2

    private static func rest(of bytes: UnsafeRawBufferPointer, after count: Int) -> iovec {
        let offset = min(max(0, count), bytes.count)
        return iovec(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress?.advanced(by: offset)),
            iov_len: bytes.count - offset
        )
    }
}
