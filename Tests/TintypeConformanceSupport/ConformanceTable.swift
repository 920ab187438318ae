// SPDX-License-Identifier: Apache-2.0

/// The number of right, wrong and refused files in each folder.
public struct ConformanceTable: Sendable {
    private struct Row {
        var right = 0
        var refused = 0
        var explained = 0
        var wrong: [String] = []
    }

    private var rows: [String: Row] = [:]

    public init() {}

    /// Counts a file.
    public mutating func add(_ image: CorpusImage, _ verdict: Verdict) {
        switch verdict {
        case .right: self.rows[image.folder, default: Row()].right += 1
        case .refused: self.rows[image.folder, default: Row()].refused += 1
        case .wrong(let reason):
            if CorpusExceptions.reasons[image.path] != nil {
                self.rows[image.folder, default: Row()].explained += 1
            } else {
                self.rows[image.folder, default: Row()].wrong.append("\(image.path): \(reason)")
            }
        }
    }

    /// The wrong files without a known reason.
    public var unexplained: [String] { self.rows.values.flatMap(\.wrong).sorted() }

    /// The table with a line for each folder, and a list of the wrong files.
    public var text: String {
        let head = Self.line("folder", ["right", "refused", "explained", "wrong"])
        let lines = self.rows.sorted { $0.key < $1.key }.map { folder, row in
            Self.line(folder, [row.right, row.refused, row.explained, row.wrong.count].map(String.init))
        }
        let sums = [\Row.right, \Row.refused, \Row.explained, \Row.wrong.count].map { path in
            String(self.rows.values.reduce(0) { $0 + $1[keyPath: path] })
        }
        return ([head] + lines + [Self.line("all", sums)] + self.unexplained).joined(separator: "\n")
    }

    private static func line(_ name: String, _ columns: [String]) -> String {
        let name = name + String(repeating: " ", count: max(0, 20 - name.count))
        return name + columns.map { String(repeating: " ", count: max(0, 11 - $0.count)) + $0 }.joined()
    }
}
