import FoundationEssentials
import Glibc

/// A list could not be read.
struct ListError: Error {
    let message: String
}

/// Reads the list of a prefetch.
enum ListFile {
    /// What a line may have at most: an address never has as much, and a file of another kind may have no line ends.
    private static let maximumLineByteCount = 1 << 20
    /// What some programs write before text in UTF-8.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The content of a file, or of standard input where `path` is `-`, without a byte order mark.
    ///
    /// Standard input may be a person who types, so `Ctrl-C` ends the wait.
    ///
    /// - Throws: ``ListError``; `CancellationError` when the task is cancelled.
    static func read(_ path: Argument) throws -> [UInt8] {
        let isStandardInput = path.text == "-"
        let descriptor = isStandardInput ? STDIN_FILENO : path.withPath { open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw self.error(path, errno) }
        defer { if descriptor > STDIN_FILENO { close(descriptor) } }
        var list: [UInt8] = []
        var lineByteCount = 0
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            try Task.checkCancellation()
            var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&source, 1, 100) != 0 else { continue }
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw self.error(path, errno) }
            if count == 0 { return list.starts(with: self.byteOrderMark) ? Array(list.dropFirst(3)) : list }
            let piece = buffer[..<count]
            lineByteCount = piece.lastIndex(where: self.endsLine).map { count - 1 - $0 } ?? lineByteCount + count
            guard lineByteCount <= self.maximumLineByteCount else {
                let name = self.name(of: path)
                throw ListError(message: "The list \(name) has a line of over a megabyte; give it one URL a line.")
            }
            list += piece
        }
    }

    private static func endsLine(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") }

    private static func name(of path: Argument) -> String {
        path.text == "-" ? "on standard input" : path.text.abbreviated
    }

    private static func error(_ path: Argument, _ code: CInt) -> ListError {
        ListError(message: "The list \(self.name(of: path)) can't be read (\(SystemError(code: code))).")
    }
}
