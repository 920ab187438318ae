// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The rows as text in columns, with colours only on a terminal.
struct Table: Sendable {
    private static let widths = [34, 5, 10, 17, 22, 22, 19, 13]
    private static let titles = ["benchmark", "what", "unit", "peer", "tintype", "peer's", "times as good", "bar"]

    private let isColoured: Bool

    init() {
        self.isColoured = isatty(1) == 1 && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    }

    /// The line of titles.
    var header: String { Self.line(Self.titles) + "verdict" }

    /// One line for `row`.
    func text(_ row: Row) -> String {
        let cells = [
            row.name,
            row.metric.name,
            row.metric.unit,
            row.peer ?? "",
            row.ours.map(Figure.text(_:)) ?? "-",
            row.theirs.map(Figure.text) ?? "-",
            row.ratio.map(Figure.text) ?? "-",
            row.bars.map(\.text).joined(separator: " "),
        ]
        return Self.line(cells) + self.coloured(row.verdict)
    }

    private func coloured(_ verdict: Row.Verdict) -> String {
        guard self.isColoured else { return verdict.rawValue }
        return switch verdict {
        case .pass: "\u{1B}[32m\(verdict.rawValue)\u{1B}[0m"
        case .short: "\u{1B}[31m\(verdict.rawValue)\u{1B}[0m"
        case .open, .unmeasured: verdict.rawValue
        }
    }

    private static func line(_ cells: [String]) -> String {
        zip(cells, self.widths).map { $0.padding(toAtLeast: $1) + " " }.joined()
    }
}

extension String {
    fileprivate func padding(toAtLeast width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - self.count))
    }
}
