// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeConcurrency

/// Shows loads on a terminal: a bar for each that runs, and a line above for each that ended.
///
/// Off a terminal it writes nothing but the lines it is given, without control codes.
final class ProgressBoard: Sendable {
    private struct State {
        var rows: [(id: Int, row: ProgressRow)] = []
        /// The lines on the terminal that belong to the board.
        var drawn = 0
        /// The columns that the figures have needed so far, so that the bars stand still.
        var figures = 0
        /// Nothing is drawn any more.
        var isOver = false
    }

    private static let interval = Duration.milliseconds(80)
    /// Loads are numbered from 0.
    private static let listID = -1
    private let output = Output.error
    private let isLive: Bool
    private let clock = ContinuousClock()
    /// Held while the terminal is written to: what is drawn must be what the state says.
    private let state = Locked(State())

    init(isEnabled: Bool) {
        self.isLive = isEnabled && Output.error.isTerminal
    }

    /// Draws while `body` runs, and leaves a clean terminal behind it.
    ///
    /// The bars are drawn by time and not by event: a load that stalls must not look as if it
    /// moved, and one that is over at once needs no bar.
    func whileShown<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        guard self.isLive else { return try await body() }
        async let _: Void = self.keepDrawing()
        defer {
            self.state.withLock { state in
                state.isOver = true
                self.output.write(Self.wipe(&state))
            }
        }
        return try await body()
    }

    private func keepDrawing() async {
        while (try? await Task.sleep(for: Self.interval)) != nil {
            self.state.withLock { self.draw(&$0) }
        }
    }

    /// Shows a bar for a load that starts.
    func start(_ id: Int, label: String) {
        guard self.isLive else { return }
        let progress = TransferProgress(receivedBytes: 0, expectedBytes: nil)
        self.add(id, ProgressRow(label: label.abbreviated, start: self.clock.now, content: .transfer(progress)))
    }

    /// Shows one bar for a list of loads.
    func startList(label: String) {
        guard self.isLive else { return }
        self.add(Self.listID, ProgressRow(label: label, start: self.clock.now, content: .list(ListTotals())))
    }

    private func add(_ id: Int, _ row: ProgressRow) {
        self.state.withLock { $0.rows.append((id, row)) }
    }

    /// Moves a load's bar.
    func update(_ id: Int, _ progress: TransferProgress) {
        self.update(id, .transfer(progress))
    }

    /// Moves the list's bar.
    func updateList(_ totals: ListTotals) {
        self.update(Self.listID, .list(totals))
    }

    private func update(_ id: Int, _ content: ProgressRow.Content) {
        guard self.isLive else { return }
        self.state.withLock { state in
            guard let index = state.rows.firstIndex(where: { $0.id == id }) else { return }
            state.rows[index].row.content = content
        }
    }

    /// Takes a load's bar away.
    func end(_ id: Int) {
        guard self.isLive else { return }
        self.state.withLock { $0.rows.removeAll { $0.id == id } }
    }

    /// Writes a result for good, above the bars.
    func line(_ text: String) throws(OutputError) {
        try self.aboveBars { () throws(OutputError) in try Output.standard.line(text) }
    }

    /// Writes an error or a warning for good, above the bars.
    func tell(_ text: String) {
        self.aboveBars { Output.error.tell(text) }
    }

    private func aboveBars<Failure: Error>(_ write: () throws(Failure) -> Void) throws(Failure) {
        guard self.isLive else { return try write() }
        try self.state.withLock { state throws(Failure) in
            // The bars are wiped first: both streams may be the same terminal.
            let wasDrawn = state.drawn > 0
            self.output.write(Self.wipe(&state))
            try write()
            if wasDrawn { self.draw(&state) }
        }
    }

    private func draw(_ state: inout State) {
        guard !state.isOver else { return }
        let now = self.clock.now
        let size = self.output.size
        // More rows than the terminal has could not be wiped.
        let rows = state.rows.prefix(max(1, size.rows - 1)).map { $0.row }
        state.figures = rows.reduce(state.figures) { max($0, $1.figures(at: now).columns) }
        let layout = ProgressRow.Layout(
            columns: size.columns,
            figures: state.figures,
            longestLabel: rows.reduce(0) { max($0, $1.label.columns) }
        )
        let text = Self.wipe(&state) + rows.map { $0.line(at: now, layout) + "\n" }.joined()
        state.drawn = rows.count
        self.output.write(text)
    }

    /// Moves up over the board's lines and clears them.
    private static func wipe(_ state: inout State) -> String {
        defer { state.drawn = 0 }
        return state.drawn > 0 ? "\u{1B}[\(state.drawn)A\r\u{1B}[J" : ""
    }
}

/// One load, or a list of them, on the ``ProgressBoard``: name, bar, bytes, rate, time left.
struct ProgressRow: Sendable {
    /// How the columns of the terminal are shared out; the same for all rows, so that they align.
    struct Layout {
        let label: Int
        let bar: Int
        let columns: Int

        /// In a narrow terminal the bar goes first, then the label, then the end of the figures.
        init(columns: Int, figures: Int, longestLabel: Int) {
            // The last column stays free: some terminals break the line there.
            let room = columns - 1 - figures
            let bar = min(20, max(8, room - min(longestLabel, 24) - 4))
            let besideBar = room - bar - 4
            self.bar = besideBar >= min(longestLabel, 12) ? bar : 0
            let label = self.bar > 0 ? besideBar : room - 1
            self.label = label >= min(longestLabel, 6) ? min(longestLabel, label) : 0
            self.columns = columns - 1
        }
    }

    /// The subject of a row.
    enum Content: Sendable {
        /// One load.
        case transfer(TransferProgress)
        /// A whole list.
        case list(ListTotals)
    }

    let label: String
    let start: ContinuousClock.Instant
    var content: Content

    /// The row as text of at most the layout's columns.
    func line(at now: ContinuousClock.Instant, _ layout: Layout) -> String {
        var parts: [String] = []
        if layout.label > 0 { parts.append(self.label.shortened(to: layout.label).padded(to: layout.label)) }
        if layout.bar > 0 { parts.append("[\(Self.bar(self.fraction, width: layout.bar))]") }
        parts.append(self.figures(at: now))
        return String(parts.joined(separator: " ").prefix(layout.columns))
    }

    /// Bytes, rate and time left.
    func figures(at now: ContinuousClock.Instant) -> String {
        let seconds = max(0.001, self.start.duration(to: now) / .seconds(1))
        switch self.content {
        case .transfer(let progress): return Self.figures(progress, after: seconds)
        case .list(let totals): return totals.figures(after: seconds)
        }
    }

    private static func figures(_ progress: TransferProgress, after seconds: Double) -> String {
        let received = progress.receivedBytes
        let rate = Double(received) / seconds
        var text = Readable.bytes(received)
        if let expected = progress.expectedBytes { text += " of \(Readable.bytes(expected))" }
        text += ", \(Readable.bytes(Int64(rate)))/s"
        if let expected = progress.expectedBytes, rate > 0, expected > received {
            text += ", \(Readable.seconds(Double(expected - received) / rate)) left"
        }
        return text
    }

    private var fraction: Double? {
        switch self.content {
        case .transfer(let progress): progress.fractionCompleted
        case .list(let totals): totals.fractionCompleted
        }
    }

    /// Returns a filled bar, or a bar that only shows movement if the length is unknown.
    private static func bar(_ fraction: Double?, width: Int) -> String {
        guard let fraction else { return String(repeating: "~", count: width) }
        let filled = Int((min(1, fraction) * Double(width)).rounded(.down))
        return String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
    }
}

/// How far a list of loads is.
struct ListTotals: Sendable {
    /// The loads of the list; `nil` while its end is not known.
    var total: Int?
    var completed = 0
    var failed = 0
    var receivedBytes: Int64 = 0

    /// The part of the list that has ended, 0 to 1; `nil` while the end of the list is not known.
    var fractionCompleted: Double? {
        self.total.map { $0 > 0 ? Double(self.completed) / Double($0) : 1 }
    }

    /// Count, bytes, rate, failures and time left.
    func figures(after seconds: Double) -> String {
        var text = "\(self.completed)\(self.total.map { " of \($0)" } ?? ""), \(Readable.bytes(self.receivedBytes))"
        text += ", \(Readable.bytes(Int64(Double(self.receivedBytes) / seconds)))/s"
        if self.failed > 0 { text += ", \(self.failed) failed" }
        if let total, self.completed > 0, self.completed < total {
            let rest = seconds / Double(self.completed) * Double(total - self.completed)
            text += ", \(Readable.seconds(rest)) left"
        }
        return text
    }
}
