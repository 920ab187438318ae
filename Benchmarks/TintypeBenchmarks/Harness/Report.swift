// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Everything that one run found out, as it is written to a file.
struct Report: Sendable, Encodable {
    let date: String
    let machine: Machine
    /// The load average after the last row.
    let loadAfter: String
    /// The versions of all sides.
    let versions: [String: String]
    let rounds: Int
    let sampleSeconds: Double
    let isQuick: Bool
    let rows: [Row]
    /// The benchmarks that did not run, and the reasons.
    let skipped: [String: String]

    /// Writes it as JSON, replacing an existing file.
    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // A ratio with a denominator of zero is not a number.
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "infinity",
            negativeInfinity: "-infinity",
            nan: "nan"
        )
        let url = URL(fileURLWithPath: path)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try encoder.encode(self).write(to: url, options: .atomic)
    }
}
