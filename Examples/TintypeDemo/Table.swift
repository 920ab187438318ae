// SPDX-License-Identifier: Apache-2.0

/// The demo's times, a run a line.
struct Table {
    let columns: [String]
    let runs: [Run]

    var text: String {
        let names = self.runs.map(\.name)
        let first = names.map(\.count).max() ?? 0
        let head = Self.left("", first) + self.columns.map { Self.right($0, 14) }.joined()
        let lines = self.runs.map { run in
            Self.left(run.name, first) + run.times.map { Self.right(Self.readable($0), 14) }.joined()
        }
        return ([head] + lines).joined(separator: "\n") + "\n"
    }

    private static func readable(_ time: Duration) -> String {
        let microseconds = time / .microseconds(1)
        if microseconds >= 1_000 { return "\(self.tenths(microseconds / 1_000)) ms" }
        return microseconds >= 1 ? "\(self.tenths(microseconds)) us" : "\(Int(microseconds * 1_000)) ns"
    }

    private static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
