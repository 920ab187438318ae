import Glibc

/// A file descriptor, closed when its owner lets go of it.
struct OpenFile: ~Copyable {
    /// What a cache needs to know about a file.
    struct Status {
        let byteCount: Int
        let isRegular: Bool
        /// Which file it is, among those of its file system.
        let number: UInt
        /// Seconds since 1970.
        let modifiedAt: Double

        init(_ status: stat) {
            self.byteCount = Int(status.st_size)
            self.isRegular = status.st_mode & S_IFMT == S_IFREG
            self.number = UInt(status.st_ino)
            self.modifiedAt = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
        }
    }

    private let descriptor: CInt

    /// Opens `path`, which starts at the open folder `base`, for reading.
    ///
    /// Follows no link and never waits for the writer of a pipe.
    init(reading path: UnsafePointer<CChar>, in base: CInt = AT_FDCWD) throws(SystemCallError) {
        try self.init(path, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
    }

    /// Opens the file of an entry for reading.
    init(reading name: EntryName, in folder: CacheFolder) throws(SystemCallError) {
        self = try name.withPath { path throws(SystemCallError) -> OpenFile in
            try OpenFile(reading: path, in: folder.descriptor)
        }
    }

    /// Makes a file at `path`, where there is none, that only this user may read and write.
    init(creating path: UnsafePointer<CChar>, in base: CInt) throws(SystemCallError) {
        try self.init(path, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    }

    private init(
        _ path: UnsafePointer<CChar>,
        _ base: CInt,
        _ flags: CInt,
        _ mode: mode_t
    ) throws(SystemCallError) {
        var descriptor: CInt
        repeat { descriptor = openat(base, path, flags | O_CLOEXEC, mode) } while descriptor < 0 && errno == EINTR
        guard descriptor >= 0 else { throw SystemCallError.last("open") }
        self.descriptor = descriptor
    }

    deinit {
        Glibc.close(self.descriptor)
    }

    /// Closes the file, and says whether all that was written was taken.
    ///
    /// On some file systems a full disk shows only here.
    consuming func closeWritten() throws(SystemCallError) {
        let descriptor = self.descriptor
        discard self
        // After EINTR the descriptor is closed as well; a second call could close another's.
        guard Glibc.close(descriptor) == 0 || errno == EINTR else { throw SystemCallError.last("close") }
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

    private static func rest(of bytes: UnsafeRawBufferPointer, after count: Int) -> iovec {
        let offset = min(max(0, count), bytes.count)
        return iovec(
            iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress?.advanced(by: offset)),
            iov_len: bytes.count - offset
        )
    }
}
