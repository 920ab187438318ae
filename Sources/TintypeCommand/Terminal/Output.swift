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

    /// Whether a person watches.
    var isTerminal: Bool { isatty(self.descriptor) == 1 }

    /// The columns of the terminal; 80 where it does not say.
    var columns: Int {
        var size = winsize()
        guard ioctl(self.descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    /// Writes a line.
    func line(_ text: String) {
        self.write(text + "\n")
    }

    /// Writes text as it is.
    func write(_ text: String) {
        self.lock.withLock { _ in
            var text = text
            text.withUTF8 { bytes in
                var rest = UnsafeRawBufferPointer(bytes)
                while !rest.isEmpty {
                    let count = Glibc.write(self.descriptor, rest.baseAddress, rest.count)
                    if count < 0, errno == EINTR { continue }
                    // Nobody listens any more, and there is nowhere to say so.
                    guard count > 0 else { return }
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                }
            }
        }
    }
}
