import FoundationEssentials
import Glibc
import Tintype

/// A result could not be written.
struct OutputError: Error {
    let message: String
    /// Whether it was a pipe whose reader has enough, as `head` has: no error to speak of.
    var isReaderGone = false
}

/// Writes results to files: whole, or not at all.
enum OutputFile {
    /// Writes `data` to `path` atomically; missing folders are made.
    ///
    /// A device or a pipe is written as it is: a file that took its place would be a surprise.
    static func write(_ data: Data, to path: String) throws(OutputError) {
        do {
            if try self.isSpecial(path) { return try self.writeInPlace(data, to: path) }
            let folder = URL(filePath: path).deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try data.write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw OutputError(
                message: "\(path.abbreviated) can't be written (\(Self.reason(error)))."
            )
        }
    }

    static func isDirectory(_ path: String) -> Bool {
        var isDirectory = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory
    }

    /// Whether there is something that is no folder.
    static func isFile(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFDIR
    }

    /// Whether two paths lead to the same file, which exists.
    static func isSameFile(_ path: String, _ other: String) -> Bool {
        var first = stat()
        var second = stat()
        guard stat(path, &first) == 0, stat(other, &second) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }

    /// Whether there is something that is not an ordinary file; throws for a directory.
    private static func isSpecial(_ path: String) throws(SystemError) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw SystemError(code: EISDIR) }
        return status.st_mode & S_IFMT != S_IFREG
    }

    private static func writeInPlace(_ data: Data, to path: String) throws(SystemError) {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(code: errno) }
        defer { close(descriptor) }
        var rest = data[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError(code: errno) }
            rest = rest.dropFirst(count)
        }
    }

    private static func reason(_ error: any Error) -> String {
        if let error = error as? SystemError { return error.description }
        guard let error = error as? CocoaError else { return "\(error)" }
        return switch error.code {
        case .fileNoSuchFile, .fileReadNoSuchFile: "its folder does not exist"
        case .fileWriteFileExists: "its folder is a file"
        case .fileWriteNoPermission: "permission denied"
        case .fileWriteOutOfSpace: "the disk is full"
        case .fileWriteVolumeReadOnly: "the disk is read-only"
        case .fileReadInvalidFileName, .fileWriteInvalidFileName: "its name is not valid, perhaps too long"
        default:
            (error.underlying as? POSIXError).map { SystemError(code: $0.code.rawValue).description } ?? "\(error)"
        }
    }
}

/// What the system says by `errno`.
struct SystemError: Error, CustomStringConvertible {
    let code: CInt

    var description: String { String(cString: strerror(self.code)) }
}
