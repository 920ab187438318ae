import Tintype
import TintypeConcurrency

/// Shows loads on a terminal: a bar for each that runs, and a line above for each that ended.
///
/// Off a terminal it writes nothing but the lines it is given, without control codes.
final class ProgressBoard: Sendable {
    private struct Row {
        let label: String
        let start: ContinuousClock.Instant
        var progress = TransferProgress(receivedBytes: 0, expectedBytes: nil)
    }

    private struct State {
        var rows: [(id: Int, row: Row)] = []
        /// The lines on the terminal that belong to the board.
        var drawn = 0
        var lastDrawing: ContinuousClock.Instant?
    }

    private static let interval = Duration.milliseconds(50)
    private let output: Output
    private let isLive: Bool
    private let clock = ContinuousClock()
    private let state = Locked(State())

    init(output: Output, isEnabled: Bool) {
        self.output = output
        self.isLive = isEnabled && output.isTerminal
    }

    /// Shows a bar for a load that starts.
    func start(_ id: Int, label: String) {
        guard self.isLive else { return }
        let row = Row(label: label, start: self.clock.now)
        self.draw(isUrgent: true) { $0.rows.append((id, row)) }
    }

    /// Moves a load's bar.
    func update(_ id: Int, _ progress: TransferProgress) {
        guard self.isLive else { return }
        self.draw(isUrgent: false) { state in
            guard let index = state.rows.firstIndex(where: { $0.id == id }) else { return }
            state.rows[index].row.progress = progress
        }
    }

    /// Takes a load's bar away.
    func end(_ id: Int) {
        guard self.isLive else { return }
        self.draw(isUrgent: true) { $0.rows.removeAll { $0.id == id } }
    }

    /// Writes a line for good, above the bars, to `output`.
    func line(_ text: String, to output: Output) {
        guard self.isLive else { return output.line(text) }
        // The bars are wiped first: both streams may be the same terminal.
        self.output.write(self.state.withLock { Self.wipe(&$0) })
        output.line(text)
        self.draw(isUrgent: true) { _ in }
    }

    private func draw(isUrgent: Bool, _ change: (inout State) -> Void) {
        let now = self.clock.now
        let columns = self.output.columns
        let text = self.state.withLock { state -> String? in
            change(&state)
            if !isUrgent, let last = state.lastDrawing, last.duration(to: now) < Self.interval { return nil }
            state.lastDrawing = now
            var text = Self.wipe(&state)
            for (_, row) in state.rows { text += Self.line(row, at: now, columns: columns) + "\n" }
            state.drawn = state.rows.count
            return text
        }
        if let text, !text.isEmpty { self.output.write(text) }
    }

    /// Moves up over the board's lines and clears them.
    private static func wipe(_ state: inout State) -> String {
        defer { state.drawn = 0 }
        return state.drawn > 0 ? "\u{1B}[\(state.drawn)A\r\u{1B}[J" : ""
    }

    /// One row: name, bar, bytes, rate, time left.
    private static func line(_ row: Row, at now: ContinuousClock.Instant, columns: Int) -> String {
        let seconds = max(0.001, row.start.duration(to: now) / .seconds(1))
        let received = row.progress.receivedBytes
        let rate = Double(received) / seconds
        var figures = Readable.bytes(received)
        if let expected = row.progress.expectedBytes { figures += " of \(Readable.bytes(expected))" }
        figures += ", \(Readable.bytes(Int64(rate)))/s"
        if let expected = row.progress.expectedBytes, rate > 0, expected > received {
            figures += ", \(Readable.seconds(Double(expected - received) / rate)) left"
        }
        let barWidth = 20
        let labelWidth = max(8, columns - barWidth - figures.count - 6)
        let label = row.label.shortened(to: labelWidth)
        let line = "\(label) [\(Self.bar(row.progress.fractionCompleted, width: barWidth))] \(figures)"
        return String(line.prefix(columns - 1))
    }

    /// A filled bar, or one that only says that something moves where the length is not known.
    private static func bar(_ fraction: Double?, width: Int) -> String {
        guard let fraction else { return String(repeating: "~", count: width) }
        let filled = Int((fraction * Double(width)).rounded(.down))
        return String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
    }
}
