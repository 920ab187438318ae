// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// Writes the lines of a log on a thread of its own, which may block: the descriptor may be a full pipe.
///
/// The descriptor is not made non-blocking, because other processes may share it.
actor LogWriter {
    /// The number of waiting bytes that starts a write without a call of ``AccessLog/flush()``.
    static let batchSize = 64 << 10
    /// The pause after a write.
    ///
    /// Lines that arrive meanwhile share the next write, so that the thread does not wake in each turn of a busy loop.
    private static let pause = Duration.milliseconds(20)

    private nonisolated let executor = ThreadExecutor(name: "tintype-log")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private let descriptor: CInt
    private var batch: [UInt8] = []

    /// Creates a writer; its thread starts with the first line.
    init(_ descriptor: CInt) {
        self.descriptor = descriptor
    }

    deinit {
        self.executor.shutdown()
    }

    /// Writes the lines of `log` until it is empty.
    func write(_ log: AccessLog) async {
        while log.take(&self.batch) {
            let rest = self.batch.withUnsafeBytes { bytes -> Int in
                let count = Self.write(bytes, to: self.descriptor)
                // Each line ends with a line feed.
                return bytes[count...].count(where: { $0 == UInt8(ascii: "\n") })
            }
            if rest > 0 { log.didDrop(rest) }
            self.batch.removeAll(keepingCapacity: self.batch.capacity <= 2 * Self.batchSize)
            try? await Task.sleep(for: Self.pause)
        }
    }

    /// Writes all bytes unless the descriptor fails, and returns the number of written bytes.
    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: CInt) -> Int {
        POSIXThread.blockBrokenPipeSignal()
        var position = 0
        while position < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count > 0 {
                position += count
            } else if count < 0, errno == EAGAIN {
                // Another process made it non-blocking.
                var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&state, 1, -1)
            } else if count == 0 || errno != EINTR {
                break
            }
        }
        return position
    }
}
