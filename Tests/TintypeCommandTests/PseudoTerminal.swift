// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency
import TintypeTestSupport

/// A terminal for a program under test, with a record of its output.
final class PseudoTerminal: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        /// The remaining answers to queries, each of which is given once.
        var answers: [(question: String, answer: String)] = []
        var isClosed = false
        var waiters: [Waiter] = []
    }

    private struct Waiter {
        let condition: @Sendable (String) -> Bool
        let continuation: CheckedContinuation<Bool, Never>
    }

    /// The path that the program opens.
    let path: String
    private let descriptor: CInt
    private let state = Locked(State())

    /// Opens a terminal that answers queries with `answers`.
    init(
        columns: UInt16 = 80,
        pixels: (width: UInt16, height: UInt16) = (0, 0),
        answers: [(question: String, answer: String)] = []
    ) throws {
        self.descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        // TIOCSPTLCK and TIOCGPTN do the same as unlockpt and ptsname, which Swift cannot see.
        var isLocked: CInt = 0
        var number: CUnsignedInt = 0
        guard self.descriptor >= 0, ioctl(self.descriptor, 0x4004_5431, &isLocked) == 0,
            ioctl(self.descriptor, 0x8004_5430, &number) == 0
        else { throw TestSupportError("there is no terminal: errno \(errno)") }
        self.path = "/dev/pts/\(number)"
        var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: pixels.width, ws_ypixel: pixels.height)
        _ = ioctl(self.descriptor, UInt(TIOCSWINSZ), &size)
        self.state.withLock { $0.answers = answers }
    }

    deinit {
        close(self.descriptor)
    }

    /// Starts to read, which is only possible after the program has started.
    func startReading() {
        POSIXThread(name: "terminal") { [self] in self.read() }.detach()
    }

    /// Types on the keyboard.
    func type(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(self.descriptor, $0.baseAddress, $0.count) }
    }

    /// The flags that a program may change and must restore.
    var settings: [UInt32] {
        var settings = termios()
        tcgetattr(self.descriptor, &settings)
        return [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag]
    }

    /// The number of bytes that were written and not yet read, which the system reports up to 4,095.
    var unreadCount: Int {
        var count: CInt = 0
        // The request is FIONREAD.
        return ioctl(self.descriptor, 0x541B, &count) == 0 ? Int(count) : 0
    }

    /// All written bytes so far, including control codes.
    var bytes: [UInt8] { self.state.withLock { $0.bytes } }

    /// All written text so far, including control codes.
    var text: String { self.state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

    /// Returns `true` when the written text meets the condition, and `false` if the program ends before.
    func wait(until condition: @escaping @Sendable (String) -> Bool) async -> Bool {
        await withCheckedContinuation { continuation in
            let known = self.state.withLock { state -> Bool? in
                if condition(String(decoding: state.bytes, as: UTF8.self)) { return true }
                if state.isClosed { return false }
                state.waiters.append(Waiter(condition: condition, continuation: continuation))
                return nil
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Returns when the program has closed the terminal.
    func waitUntilClosed() async {
        _ = await self.wait { _ in false }
    }

    /// The lines that a person sees in the end, after the program's few control codes.
    var screen: [String] {
        var lines = [""]
        var row = 0
        var rest = self.text[...]
        while let character = rest.first {
            if rest.hasPrefix("\u{1B}["), let end = rest.dropFirst(2).firstIndex(where: \.isLetter) {
                let number = Int(rest[rest.index(rest.startIndex, offsetBy: 2)..<end]) ?? 1
                if rest[end] == "A" { row = max(0, row - number) }
                if rest[end] == "J" { lines = Array(lines[..<row]) + [""] }
                rest = rest[rest.index(after: end)...]
                continue
            }
            rest = rest.dropFirst()
            switch character {
            case "\r": break
            case "\n", "\r\n":
                row += 1
                if row == lines.count { lines.append("") }
            default: lines[row].append(character)
            }
        }
        return lines
    }

    private func read() {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = Glibc.read(self.descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            let answers = self.state.withLock { state -> [String] in
                guard count > 0, !state.answers.isEmpty else { return [] }
                let text = String(decoding: state.bytes + buffer[..<count], as: UTF8.self)
                let asked = state.answers.filter { text.contains($0.question) }
                state.answers.removeAll { text.contains($0.question) }
                return asked.map(\.answer)
            }
            for answer in answers { self.type(answer) }
            let (done, failed) = self.state.withLock { state -> ([Waiter], [Waiter]) in
                if count > 0 { state.bytes += buffer[..<count] } else { state.isClosed = true }
                let text = String(decoding: state.bytes, as: UTF8.self)
                let done = state.waiters.filter { $0.condition(text) }
                state.waiters.removeAll { $0.condition(text) }
                defer { if state.isClosed { state.waiters = [] } }
                return (done, state.isClosed ? state.waiters : [])
            }
            for waiter in done { waiter.continuation.resume(returning: true) }
            for waiter in failed { waiter.continuation.resume(returning: false) }
            if count <= 0 { return }
        }
    }
}
