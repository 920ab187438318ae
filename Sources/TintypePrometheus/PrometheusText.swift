// SPDX-License-Identifier: Apache-2.0

package import Tintype

/// Writes figures in the text format of Prometheus (version 0.0.4).
package struct PrometheusText {
    private let prefix: String
    /// The lines so far.
    package private(set) var text = ""
    private var name = ""

    /// Starts a text whose names begin with `prefix` and `_`.
    package init(prefix: String) {
        self.prefix = prefix
    }

    /// Writes the head of a metric.
    package mutating func begin(_ name: String, _ type: String, _ help: String) {
        self.name = "\(self.prefix)_\(name)"
        self.text += "# HELP \(self.name) \(help)\n# TYPE \(self.name) \(type)\n"
    }

    /// Writes a metric with one value.
    package mutating func write(_ name: String, _ type: String, _ help: String, _ value: Int) {
        self.begin(name, type, help)
        self.add(value, [])
    }

    /// Writes a metric with one value.
    package mutating func write(_ name: String, _ type: String, _ help: String, _ value: Double) {
        self.begin(name, type, help)
        self.add(value, [])
    }

    /// Adds a value to the metric that was begun.
    package mutating func add(_ value: Int, _ labels: [(name: String, value: String)]) {
        self.text += "\(self.name)\(Self.text(of: labels)) \(value)\n"
    }

    /// Adds a value to the metric that was begun.
    package mutating func add(_ value: Double, _ labels: [(name: String, value: String)]) {
        self.text += "\(self.name)\(Self.text(of: labels)) \(value)\n"
    }

    /// Adds the buckets, the sum and the count of a histogram to the metric that was begun.
    package mutating func add(_ histogram: LatencyHistogram, _ labels: [(name: String, value: String)]) {
        var sum: UInt64 = 0
        for (bound, count) in zip(LatencyHistogram.bounds, histogram.counts) {
            sum += count
            self.text += "\(self.name)_bucket\(Self.text(of: labels + [("le", "\(bound)")])) \(sum)\n"
        }
        self.text += "\(self.name)_bucket\(Self.text(of: labels + [("le", "+Inf")])) \(histogram.count)\n"
        self.text += "\(self.name)_sum\(Self.text(of: labels)) \(histogram.sum)\n"
        self.text += "\(self.name)_count\(Self.text(of: labels)) \(histogram.count)\n"
    }

    private static func text(of labels: [(name: String, value: String)]) -> String {
        guard !labels.isEmpty else { return "" }
        return "{" + labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",") + "}"
    }

    private static func escaped(_ value: String) -> String {
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
