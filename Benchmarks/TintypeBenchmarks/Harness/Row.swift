// SPDX-License-Identifier: Apache-2.0

/// One line of the table, which compares our figure with one peer's.
struct Row: Sendable {
    /// The result of the comparison.
    enum Verdict: String, Sendable, Encodable {
        /// The figure reaches every bar.
        case pass
        /// The figure misses at least one bar.
        case short = "falls short"
        /// The figure has no bar.
        case open = "no bar"
        /// One side is missing, so the row has no verdict.
        case unmeasured = "not measured"
    }

    let name: String
    let metric: Metric
    let peer: String?
    let ours: Summary?
    let theirs: Summary?
    /// Round by round, how many times as good ours is.
    let ratio: Summary?
    let bars: [Bar]
    /// The reasons why a side is missing, and remarks on its configuration.
    let notes: [String]

    /// Creates a row from measurements or counts.
    init(
        name: String,
        metric: Metric,
        peer: String? = nil,
        ours: Summary? = nil,
        theirs: Summary? = nil,
        ratio: Summary? = nil,
        bars: [Bar] = [],
        notes: [String] = []
    ) {
        self.name = name
        self.metric = metric
        self.peer = peer
        self.ours = ours
        self.theirs = theirs
        self.ratio = ratio
        self.bars = bars
        self.notes = notes
    }

    var verdict: Verdict {
        guard self.ours != nil else { return .unmeasured }
        guard !self.bars.isEmpty else { return .open }
        let reached = self.bars.map { $0.isReached(ours: self.ours?.median, ratio: self.ratio?.median) }
        if reached.contains(false) { return .short }
        return reached.contains(nil) ? .unmeasured : .pass
    }
}

extension Row: Encodable {
    private enum CodingKeys: String, CodingKey {
        case name, metric, unit, lowerIsBetter, peer, ours, theirs, ratio, bars, notes, verdict
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.name, forKey: .name)
        try container.encode(self.metric.name, forKey: .metric)
        try container.encode(self.metric.unit, forKey: .unit)
        try container.encode(self.metric.lowerIsBetter, forKey: .lowerIsBetter)
        try container.encodeIfPresent(self.peer, forKey: .peer)
        try container.encodeIfPresent(self.ours, forKey: .ours)
        try container.encodeIfPresent(self.theirs, forKey: .theirs)
        try container.encodeIfPresent(self.ratio, forKey: .ratio)
        try container.encode(self.bars.map(\.text), forKey: .bars)
        try container.encode(self.notes, forKey: .notes)
        try container.encode(self.verdict, forKey: .verdict)
    }
}
