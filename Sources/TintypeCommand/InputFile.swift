// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A file that the command reads by itself: a file, a pipe, or standard input.
///
/// The other end of a pipe may never write, or never open it. A wait for it ends when the task is cancelled.
final class InputFile {
    private static let pieceSize = 64 << 10
    private let descriptor: CInt

    /// Opens a file; `-` is standard input.
    init(_ path: Argument) throws(SystemError) {
        // Without O_NONBLOCK, opening a pipe waits for a writer.
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        self.descriptor = path.text == "-" ? STDIN_FILENO : path.withPath { open($0, flags) }
        guard self.descriptor >= 0 else { throw SystemError(code: errno) }
    }

    deinit {
        if self.descriptor > STDERR_FILENO { close(self.descriptor) }
    }

    /// Waits for bytes and returns some; an empty array at the end.
    ///
    /// - Throws: ``SystemError``; its code is `ECANCELED` when the task is cancelled.
    func read() throws(SystemError) -> [UInt8] {
        while true {
            guard !Task.isCancelled else { throw SystemError(code: ECANCELED) }
            if let bytes = try self.readAvailable(within: 100) { return bytes }
        }
    }

    /// Returns the bytes that come within some milliseconds; `nil` without any, and an empty array at the end.
    func readAvailable(within milliseconds: CInt) throws(SystemError) -> [UInt8]? {
        var source = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, milliseconds) > 0 else { return nil }
        var code: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.pieceSize) { space, count in
            let result = Glibc.read(self.descriptor, space.baseAddress, space.count)
            code = result < 0 ? errno : 0
            count = max(0, result)
        }
        switch code {
        case 0: return bytes
        case EINTR, EAGAIN: return nil
        default: throw SystemError(code: code)
        }
    }
}
