// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// A result could not be written.
struct OutputError: Error {
    let message: String
    /// Whether it was a pipe whose reader has enough, as `head` has: no error to speak of.
    var isReaderGone = false
}

/// Writes results to files: whole, or not at all.
enum OutputFile {
    /// The links that are followed, as many as the kernel follows.
    private static let maximumLinks = 40

    /// A file that is being written.
    struct Opened {
        /// Standard output, which is written as it is.
        static let standardOutput = Opened(descriptor: STDOUT_FILENO)

        fileprivate let descriptor: CInt

        /// Writes `bytes` behind those before.
        func append(_ bytes: some ContiguousBytes) throws(SystemError) {
            let code = bytes.withUnsafeBytes { Output.write($0, to: self.descriptor) }
            guard code == 0 else { throw SystemError(code: code) }
        }
    }

    /// Writes `data` to `path` atomically, and makes missing folders.
    ///
    /// - Returns: The folder, if it was made.
    static func write(_ data: Data, to path: Argument) throws(OutputError) -> Argument? {
        try self.write(to: path) { file throws(SystemError) in try file.append(data) }
    }

    /// Writes the bytes that `body` appends to `path` atomically, and makes missing folders.
    ///
    /// An existing file keeps its permissions and, if this user may set them, its owner and group. A link stays a link.
    /// A device, a pipe, or an open file without a name is written in place, because a file instead of it would be a
    /// surprise.
    ///
    /// - Returns: The folder, if it was made.
    static func write(
        to path: Argument,
        _ body: (Opened) throws(SystemError) -> Void
    ) throws(OutputError) -> Argument? {
        do throws(SystemError) {
            var status = stat()
            guard path.withPath({ stat($0, &status) }) == 0 else {
                let target = try self.target(of: path)
                // A folder that cannot be looked into says so when the file is made.
                let made = try self.makeFolder(of: target)
                try self.replace(target, like: nil, body)
                return made
            }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: throw SystemError(code: EISDIR)
            case S_IFREG:
                let target = try self.target(of: path)
                // A link in /proc leads to its file, even if the file no longer has the name that the link shows.
                if self.isSameFile(path, target) {
                    try self.replace(target, like: status, body)
                } else {
                    try self.writeInPlace(path, body)
                }
            default: try self.writeInPlace(path, body)
            }
            return nil
        } catch {
            throw OutputError(message: "\(path.text.abbreviated) cannot be written (\(error)).")
        }
    }

    static func isDirectory(_ path: Argument) -> Bool {
        var status = stat()
        return path.withPath { stat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Whether two paths lead to the same file, which exists.
    static func isSameFile(_ path: Argument, _ other: Argument) -> Bool {
        var first = stat()
        var second = stat()
        guard path.withPath({ stat($0, &first) }) == 0, other.withPath({ stat($0, &second) }) == 0 else { return false }
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino
    }

    /// Returns the path at the end of all links, even if it does not exist yet.
    private static func target(of path: Argument) throws(SystemError) -> Argument {
        var path = path
        for _ in 0..<self.maximumLinks {
            var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = path.withPath { readlink($0, &buffer, buffer.count) }
            // Nothing there, or no link.
            guard count >= 0 else { return path }
            let link = buffer[..<count].map { UInt8(bitPattern: $0) }
            path = Argument(bytes: link.first == UInt8(ascii: "/") ? link : self.folder(of: path) + link)
        }
        throw SystemError(code: ELOOP)
    }

    /// The folder of a path with the slash behind it; empty for the current one.
    private static func folder(of path: Argument) -> [UInt8] {
        path.bytes.lastIndex(of: UInt8(ascii: "/")).map { Array(path.bytes[...$0]) } ?? []
    }

    /// Makes the folder of a path and its parents; returns `nil` if it exists.
    private static func makeFolder(of path: Argument) throws(SystemError) -> Argument? {
        let folder = self.folder(of: path)
        var isMade = false
        for end in folder.indices.dropFirst() where folder[end] == UInt8(ascii: "/") {
            let part = Argument(bytes: folder[..<end])
            let isNew = part.withPath { mkdir($0, 0o777) } == 0
            isMade = isMade || isNew
            guard !isNew, errno != EEXIST else { continue }
            let code = errno
            // The user may not be permitted to make a folder that exists.
            guard self.isDirectory(part) else { throw SystemError(code: code) }
        }
        return isMade ? Argument(bytes: folder) : nil
    }

    /// Writes a file beside `path` and gives it that name.
    private static func replace(
        _ path: Argument,
        like old: stat?,
        _ body: (Opened) throws(SystemError) -> Void
    ) throws(SystemError) {
        let number = UInt64.random(in: 0...UInt64.max)
        let temporary = Argument(bytes: self.folder(of: path) + ".tintype-\(String(number, radix: 36)).part".utf8)
        // No other user may read it before it has the permissions of the old one.
        let mode: mode_t = old == nil ? 0o666 : 0o600
        let descriptor = temporary.withPath { open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode) }
        guard descriptor >= 0 else { throw SystemError(code: errno) }
        do throws(SystemError) {
            defer { close(descriptor) }
            if let old { self.keepAttributes(of: old, descriptor) }
            try body(Opened(descriptor: descriptor))
        } catch {
            temporary.withPath { _ = unlink($0) }
            throw error
        }
        let isRenamed = temporary.withPath { from in path.withPath { rename(from, $0) } } == 0
        guard isRenamed else {
            let code = errno
            temporary.withPath { _ = unlink($0) }
            throw SystemError(code: code)
        }
    }

    /// Gives the new file the owner, the group and the permissions of the old one, as far as that is permitted.
    private static func keepAttributes(of old: stat, _ descriptor: CInt) {
        var mode = old.st_mode & 0o7777
        if fchown(descriptor, old.st_uid, old.st_gid) != 0 {
            // The rights of another owner or group must not become rights of this one.
            mode &= ~(S_ISUID | S_ISGID)
            if fchown(descriptor, uid_t.max, old.st_gid) != 0 { mode = mode & ~0o070 | (mode & 0o007) << 3 & mode }
        }
        // A file system without permissions does not keep any.
        _ = fchmod(descriptor, mode)
    }

    private static func writeInPlace(
        _ path: Argument,
        _ body: (Opened) throws(SystemError) -> Void
    ) throws(SystemError) {
        let descriptor = path.withPath { open($0, O_WRONLY | O_TRUNC | O_CLOEXEC) }
        guard descriptor >= 0 else { throw SystemError(code: errno) }
        defer { close(descriptor) }
        try body(Opened(descriptor: descriptor))
    }
}

/// The system's text for an `errno`.
struct SystemError: Error, CustomStringConvertible {
    let code: CInt

    var description: String { String(cString: strerror(self.code)) }
}
