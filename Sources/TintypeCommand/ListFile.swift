import FoundationEssentials
import Glibc

/// A list could not be read.
struct ListError: Error {
    let message: String
}

/// Reads the list of a prefetch.
enum ListFile {
    /// The content of a file, or of standard input where `path` is `-`.
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
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            try Task.checkCancellation()
            var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&source, 1, 100) != 0 else { continue }
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw self.error(path, errno) }
            if count == 0 { return list }
            list += buffer[..<count]
        }
    }

    private static func error(_ path: Argument, _ code: CInt) -> ListError {
        let name = path.text == "-" ? "on standard input" : path.text.abbreviated
        return ListError(message: "The list \(name) can't be read (\(SystemError(code: code))).")
    }
}
