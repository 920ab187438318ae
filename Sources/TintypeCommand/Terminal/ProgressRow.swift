import Tintype

/// One load on the ``ProgressBoard``: name, bar, bytes, rate, time left.
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

    let label: String
    let start: ContinuousClock.Instant
    var progress = TransferProgress(receivedBytes: 0, expectedBytes: nil)

    init(label: String, start: ContinuousClock.Instant) {
        self.label = label
        self.start = start
    }

    /// The row as text of at most the layout's columns.
    func line(at now: ContinuousClock.Instant, _ layout: Layout) -> String {
        var parts: [String] = []
        if layout.label > 0 { parts.append(self.label.shortened(to: layout.label).padded(to: layout.label)) }
        if layout.bar > 0 { parts.append("[\(Self.bar(self.progress.fractionCompleted, width: layout.bar))]") }
        parts.append(self.figures(at: now))
        return String(parts.joined(separator: " ").prefix(layout.columns))
    }

    /// Bytes, rate and time left.
    func figures(at now: ContinuousClock.Instant) -> String {
        let received = self.progress.receivedBytes
        let seconds = max(0.001, self.start.duration(to: now) / .seconds(1))
        let rate = Double(received) / seconds
        var text = Readable.bytes(received)
        if let expected = self.progress.expectedBytes { text += " of \(Readable.bytes(expected))" }
        text += ", \(Readable.bytes(Int64(rate)))/s"
        if let expected = self.progress.expectedBytes, rate > 0, expected > received {
            text += ", \(Readable.seconds(Double(expected - received) / rate)) left"
        }
        return text
    }

    /// A filled bar, or one that only says that something moves where the length is not known.
    private static func bar(_ fraction: Double?, width: Int) -> String {
        guard let fraction else { return String(repeating: "~", count: width) }
        let filled = Int((min(1, fraction) * Double(width)).rounded(.down))
        return String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
    }
}
