// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// One of the process's output streams; lines from several tasks never mix.
final class Output: Sendable {
    /// Where results go.
    static let standard = Output(STDOUT_FILENO)
    /// Where errors and progress go.
    static let error = Output(STDERR_FILENO)

    private let descriptor: CInt
    private let lock = Locked(())

    private init(_ descriptor: CInt) {
        self.descriptor = descriptor
    }

    /// Takes the standard descriptors that the caller has closed.
    ///
    /// Otherwise the next file or connection would get their numbers, and reports be written into it. Writing
    /// still fails, and is reported.
    static func reserve() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Whether a person watches.
    var isTerminal: Bool { isatty(self.descriptor) == 1 }

    /// The size of the terminal; 80 columns and 24 rows if it does not report one.
    var size: (columns: Int, rows: Int) {
        let size = self.window
        guard size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// The size of all cells of the terminal together in pixels; `nil` if it does not report one.
    var pixelSize: (width: Int, height: Int)? {
        let size = self.window
        guard size.ws_xpixel > 0, size.ws_ypixel > 0 else { return nil }
        return (Int(size.ws_xpixel), Int(size.ws_ypixel))
    }

    private var window: winsize {
        var size = winsize()
        guard ioctl(self.descriptor, UInt(TIOCGWINSZ), &size) == 0 else { return winsize() }
        return size
    }

    /// Writes a line, or several, that the caller of the command counts on, without characters that act on a terminal.
    ///
    /// - Throws: When it cannot be written: a result that cannot be read is no success.
    func line(_ text: String) throws(OutputError) {
        try Self.check(self.write(text.harmless + "\n"))
    }

    /// - Throws: The meaning of the `errno` `code` for standard output, unless it is 0.
    static func check(_ code: CInt) throws(OutputError) {
        guard code != 0 else { return }
        throw OutputError(
            message: "Standard output cannot be written (\(String(cString: strerror(code)))).",
            isReaderGone: code == EPIPE
        )
    }

    /// Writes a line, such as an error's, whose own failure could not be reported anywhere.
    func tell(_ text: String) {
        self.write(text.harmless + "\n")
    }

    /// Writes text as it is; returns 0, or the `errno` of what went wrong.
    @discardableResult
    func write(_ text: String) -> CInt {
        self.lock.withLock { _ in
            var text = text
            return text.withUTF8 { Self.write(UnsafeRawBufferPointer($0), to: self.descriptor) }
        }
    }

    /// Writes bytes as they are; returns 0, or the `errno` of what went wrong.
    func write(_ bytes: [UInt8]) -> CInt {
        self.lock.withLock { _ in bytes.withUnsafeBytes { Self.write($0, to: self.descriptor) } }
    }

    /// Writes all bytes; returns 0, or the `errno` of what went wrong.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> CInt {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return errno }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return 0
    }
}
