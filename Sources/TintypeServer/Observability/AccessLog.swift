// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// The log of a server: a line for each request, and lines for its own events.
///
/// Lines go to a buffer, from which a thread writes them. The caller never waits for the reader of the log: if the
/// buffer is full, the log drops lines, and later reports how many.
final class AccessLog: Sendable {
    private struct State {
        var lines: LogLines
        /// The number of dropped lines that the log has not reported yet.
        var unreportedCount = 0
        var droppedCount = 0
        /// Whether the writer is running, so that it takes new lines by itself.
        var isWriting = false
    }

    private let state: Locked<State>
    private let writer: LogWriter
    private let capacity: Int

    /// Creates a log.
    ///
    /// - Parameters:
    ///   - format: The form of the lines.
    ///   - descriptor: The open file to write to, which must stay open as long as the log.
    ///   - capacity: The bytes of lines that may wait to be written.
    init(_ format: ImageServer.LogFormat, to descriptor: CInt, capacity: Int = 1 << 20) {
        self.state = Locked(State(lines: LogLines(format)))
        self.writer = LogWriter(descriptor)
        self.capacity = capacity
    }

    /// The number of lines that were dropped because the descriptor did not take them in time.
    var droppedLineCount: Int { self.state.withLock { $0.droppedCount } }

    // MARK: Lines

    /// Adds the line of an exchange, which is written after ``flush()``, or when many lines wait.
    func append(_ exchange: ExchangeRecord, traceID: String? = nil) {
        let now = Self.milliseconds
        self.add { $0.append(exchange, traceID: traceID, at: now) }
    }

    /// Writes a line of the server itself.
    func log(_ level: ImageServer.LogLevel, _ message: String, _ fields: KeyValuePairs<String, String> = [:]) {
        let now = Self.milliseconds
        self.add { $0.append(level, message, fields, at: now) }
        self.flush()
    }

    private func add(_ write: (inout LogLines) -> Void) {
        let isLong = self.state.withLock { state -> Bool in
            guard state.lines.bytes.count < self.capacity else {
                state.unreportedCount += 1
                state.droppedCount += 1
                return false
            }
            write(&state.lines)
            return state.lines.bytes.count >= LogWriter.batchSize
        }
        if isLong { self.flush() }
    }

    private static var milliseconds: Int {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    }

    // MARK: Writing

    /// Starts the writer, unless it is writing already.
    ///
    /// Returns at once.
    func flush() {
        let mustStart = self.state.withLock { state -> Bool in
            guard !state.isWriting, !state.lines.bytes.isEmpty else { return false }
            state.isWriting = true
            return true
        }
        // The task keeps the log alive until all lines are written.
        if mustStart { Task { await self.writer.write(self) } }
    }

    /// Writes the lines, and returns when the descriptor has taken them, or after `time`.
    ///
    /// The reader of the log may be stuck. Cancellation does not end the wait.
    func finish(within time: Duration) async {
        self.flush()
        let end = ContinuousClock.now + time
        await Task {
            while self.hasUnwrittenLines, ContinuousClock.now < end { try? await Task.sleep(for: .milliseconds(5)) }
        }.value
    }

    private var hasUnwrittenLines: Bool { self.state.withLock { $0.isWriting || !$0.lines.bytes.isEmpty } }

    /// Moves the lines to `batch`, which must be empty.
    ///
    /// - Returns: Whether there are lines. If not, the writer must end.
    func take(_ batch: inout [UInt8]) -> Bool {
        let now = Self.milliseconds
        return self.state.withLock { state -> Bool in
            guard !state.lines.bytes.isEmpty else {
                state.isWriting = false
                return false
            }
            if state.unreportedCount > 0 {
                state.lines.begin(.warning, at: now)
                state.lines.add("message", "The log dropped lines because its reader is too slow.")
                state.lines.add("dropped_lines", state.unreportedCount)
                state.lines.end()
                state.unreportedCount = 0
            }
            state.lines.move(to: &batch)
            return true
        }
    }

    /// Counts lines that could not be written.
    func didDrop(_ count: Int) {
        self.state.withLock { state in
            state.unreportedCount += count
            state.droppedCount += count
        }
    }
}
