import Glibc

/// Reads the names in a folder.
enum Folder {
    /// Calls `body` with each name in the folder at `path` and the descriptor of the folder.
    ///
    /// A folder that is not there has no names.
    static func forEachName(
        in path: String,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ folder: CInt) -> Void
    ) throws(SystemCallError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
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
            withUnsafePointer(to: &entry.pointee.d_name) { name in
                let name = UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self)
                body(UnsafeBufferPointer(start: name, count: strlen(name)), descriptor)
            }
            errno = 0
        }
        guard errno == 0 else { throw SystemCallError.last("readdir") }
    }

    /// What is known about the file `name` in the folder, without following links.
    static func status(of name: UnsafeBufferPointer<UInt8>, in folder: CInt) -> OpenFile.Status? {
        var status = stat()
        guard let name = name.baseAddress, fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        return OpenFile.Status(status)
    }
}
