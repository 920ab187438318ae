import Glibc

/// Reads the names in a folder.
enum Folder {
    /// Calls `body` with each name in the folder at `path`, which starts at the open folder `base`,
    /// and with the descriptor of the folder.
    ///
    /// A folder that is not there has no names.
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
            // The record ends after the name: only its pointer may be taken, not its declared size.
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

    /// Whether the folder at `path` has something in it that `condition` holds for, as far as the names and kinds tell.
    ///
    /// A folder that is not there has nothing in it.
    static func contains(
        at path: String,
        in base: CInt = AT_FDCWD,
        _ condition: (_ name: UnsafeBufferPointer<UInt8>, _ isRegular: Bool) -> Bool
    ) throws(SystemCallError) -> Bool {
        var isFound = false
        try self.forEach(at: path, in: base) { name, kind, folder in
            guard !isFound else { return }
            // Not every file system tells the kind with the name.
            let isRegular =
                kind == UInt8(DT_UNKNOWN)
                ? self.status(of: name, in: folder)?.isRegular ?? false : kind == UInt8(DT_REG)
            isFound = condition(name, isRegular)
        }
        return isFound
    }

    /// The names in a folder, of those that are text.
    static func names(at path: String, in base: CInt = AT_FDCWD) -> [String] {
        var names: [String] = []
        try? self.forEachName(at: path, in: base) { name, _ in names.append(String(decoding: name, as: UTF8.self)) }
        return names
    }

    /// What is known about the file `name` in the folder, without following links.
    static func status(of name: UnsafeBufferPointer<UInt8>, in folder: CInt) -> OpenFile.Status? {
        var status = stat()
        guard let name = name.baseAddress, fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        return OpenFile.Status(status)
    }
}
