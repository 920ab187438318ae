// SPDX-License-Identifier: Apache-2.0

extension Row {
    /// A row of one figure that was counted or timed once, for which less is better.
    static func figure(
        _ name: String,
        _ what: String,
        _ unit: String,
        _ figure: Double?,
        _ bars: [Bar] = [],
        notes: [String] = []
    ) -> Row {
        Row(
            name: name,
            metric: .plain(what, unit, lowerIsBetter: true),
            ours: figure.map { Summary([$0]) },
            bars: bars,
            notes: notes
        )
    }
}
