// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file descriptor, which its owner closes.
struct OpenFile: ~Copyable {
    /// The attributes of a file.
    struct Status {
        let byteCount: Int
        let isRegular: Bool
        /// The inode number.
        let number: UInt
        /// The time of the last change in seconds since 1970.
        let modifiedAt: Double

        init(_ status: stat) {
            self.byteCount = Int(status.st_size)
            self.isRegular = status.st_mode & S_IFMT == S_IFREG
            self.number = UInt(status.st_ino)
            self.modifiedAt = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
        }
    }

    /// The descriptor, which is open while this value lives.
    let descriptor: CInt

    /// Opens `path`, relative to the folder `base`, for reading.
    ///
    /// Does not follow a symbolic link, and does not wait for the writer of a pipe.
    init(reading path: UnsafePointer<CChar>, in base: CInt = AT_FDCWD) throws(SystemCallError) {
        try self.init(path, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
    }

    /// Opens the file of an entry for reading.
    init(reading name: EntryName, in folder: CacheFolder) throws(SystemCallError) {
        self = try name.withPath { path throws(SystemCallError) -> OpenFile in
            try OpenFile(reading: path, in: folder.descriptor)
        }
    }

    /// Creates a file at `path` with access for this user only, and fails if the file exists.
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

    /// Closes the file, and throws if a write failed.
    ///
    /// On some file systems only this call reports a full disk.
    consuming func closeWritten() throws(SystemCallError) {
        let descriptor = self.descriptor
        discard self
        // After EINTR the descriptor is closed as well; a second call could close a descriptor of another thread.
        guard Glibc.close(descriptor) == 0 || errno == EINTR else { throw SystemCallError.last("close") }
    }

    func status() throws(SystemCallError) -> Status {
        var status = stat()
        guard fstat(self.descriptor, &status) == 0 else { throw SystemCallError.last("fstat") }
        return Status(status)
    }

    /// Reads from the start of the file until `buffer` is full or the file ends.
    ///
    /// - Returns: The number of bytes read.
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

/// Reads the names in a folder.
enum Folder {
    /// Calls `body` with each name in the folder at `path`, relative to `base`, and with the descriptor of the folder.
    ///
    /// A missing folder has no names.
    static func forEachName(
        at path: String,
        in base: CInt = AT_FDCWD,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ folder: CInt) -> Void
    ) throws(SystemCallError) {
        try self.forEach(at: path, in: base) { name, _, folder in body(name, folder) }
    }

    private static func forEach(
        at path: String,
        in base: CInt,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ kind: UInt8, _ folder: CInt) -> Void
    ) throws(SystemCallError) {
        let descriptor = openat(base, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return }
            throw SystemCallError.last("open")
        }
        guard let stream = fdopendir(descriptor) else {
            let error = SystemCallError.last("fdopendir")
            close(descriptor)
            throw error
        }
        defer { closedir(stream) }
        errno = 0
        while let entry = readdir(stream) {
            // The record ends after the name, so use only its pointer and not its declared size.
            let kind = entry.pointee.d_type
            withUnsafePointer(to: &entry.pointee.d_name) { name in
                let name = UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self)
                let length = strlen(name)
                let isSelf = name[0] == UInt8(ascii: ".") && (length == 1 || length == 2 && name[1] == name[0])
                if !isSelf { body(UnsafeBufferPointer(start: name, count: length), kind, descriptor) }
            }
            errno = 0
        }
        guard errno == 0 else { throw SystemCallError.last("readdir") }
    }

    /// Returns whether the folder at `path` has an item whose name and kind satisfy `condition`.
    ///
    /// A missing folder has no items.
    static func contains(
        at path: String,
        in base: CInt = AT_FDCWD,
        _ condition: (_ name: UnsafeBufferPointer<UInt8>, _ isRegular: Bool) -> Bool
    ) throws(SystemCallError) -> Bool {
        var isFound = false
        try self.forEach(at: path, in: base) { name, kind, folder in
            guard !isFound else { return }
            // Not every file system returns the kind with the name.
            let isRegular =
                kind == UInt8(DT_UNKNOWN)
                ? self.status(of: name, in: folder)?.isRegular ?? false : kind == UInt8(DT_REG)
            isFound = condition(name, isRegular)
        }
        return isFound
    }

    /// Returns the names in a folder.
    static func names(at path: String, in base: CInt = AT_FDCWD) -> [String] {
        var names: [String] = []
        try? self.forEachName(at: path, in: base) { name, _ in names.append(String(decoding: name, as: UTF8.self)) }
        return names
    }

    /// Returns the attributes of the file `name` in the folder, without following links.
    static func status(of name: UnsafeBufferPointer<UInt8>, in folder: CInt) -> OpenFile.Status? {
        var status = stat()
        guard let name = name.baseAddress, fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        return OpenFile.Status(status)
    }
}
