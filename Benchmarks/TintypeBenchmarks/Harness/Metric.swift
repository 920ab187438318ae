// SPDX-License-Identifier: Apache-2.0

/// A figure that is read off measurements, and which way is better.
struct Metric: Sendable {
    /// The measured quantity: `wall`, `cpu`, `peak`, ...
    let name: String
    /// The unit of the figure.
    let unit: String
    /// Whether a smaller figure is the better one.
    let lowerIsBetter: Bool
    /// Reads the figure off a measurement.
    let figure: @Sendable (Measurement) -> Double

    /// Time on the clock of one operation.
    static func wall(_ unit: TimeUnit) -> Metric {
        Metric(name: "wall", unit: unit.rawValue, lowerIsBetter: true) {
            $0.wallSeconds / Double($0.operations) * unit.perSecond
        }
    }

    /// Processor time of one operation.
    static func cpu(_ unit: TimeUnit) -> Metric {
        Metric(name: "cpu", unit: unit.rawValue, lowerIsBetter: true) {
            $0.cpuSeconds / Double($0.operations) * unit.perSecond
        }
    }

    /// Returns the work done per second, if one operation does `work` of `unit`.
    static func rate(_ work: Double, _ unit: String) -> Metric {
        Metric(name: "wall", unit: unit, lowerIsBetter: false) { work * Double($0.operations) / $0.wallSeconds }
    }

    /// Returns the work done per second of processor time, if one operation does `work` of `unit`.
    static func cpuRate(_ work: Double, _ unit: String) -> Metric {
        Metric(name: "cpu", unit: unit, lowerIsBetter: false) { work * Double($0.operations) / $0.cpuSeconds }
    }

    /// Peak memory over the idle process.
    static let peak = Metric(name: "peak", unit: "MiB", lowerIsBetter: true) { ($0.peakBytes ?? .nan) / 1_048_576 }

    /// The most resident memory of a server, idle process included.
    static let resident = Metric(name: "RSS", unit: "MiB", lowerIsBetter: true) { ($0.peakBytes ?? .nan) / 1_048_576 }

    /// The time that 99 of 100 operations stay below.
    static let tail = Metric(name: "p99", unit: "ms", lowerIsBetter: true) { $0.tailMilliseconds ?? .nan }

    /// A figure that is counted or computed, not read off measurements.
    static func plain(_ name: String, _ unit: String, lowerIsBetter: Bool) -> Metric {
        Metric(name: name, unit: unit, lowerIsBetter: lowerIsBetter) { _ in .nan }
    }

    /// How many times as good `ours` is as `theirs`: over 1 is in our favour, whichever way is better.
    func advantage(of ours: Double, over theirs: Double) -> Double {
        self.lowerIsBetter ? theirs / ours : ours / theirs
    }
}
