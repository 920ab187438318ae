import Tintype

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

    /// What a row is about.
    enum Content: Sendable {
        /// One load.
        case transfer(TransferProgress)
        /// A whole list.
        case list(ListTotals)
    }

    var label: String
    let start: ContinuousClock.Instant
    var content: Content

    init(label: String, start: ContinuousClock.Instant, content: Content) {
        self.label = label
        self.start = start
        self.content = content
    }

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

    /// A filled bar, or one that only says that something moves where the length is not known.
    private static func bar(_ fraction: Double?, width: Int) -> String {
        guard let fraction else { return String(repeating: "~", count: width) }
        let filled = Int((min(1, fraction) * Double(width)).rounded(.down))
        return String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
    }
}
