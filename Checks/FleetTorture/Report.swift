// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The lines of the check, and the bars that were missed.
final class Report: Sendable {
    private let bars = Mutex<[String]>([])

    /// The names of the missed bars.
    var missed: [String] { self.bars.withLock { $0 } }

    /// Prints a line at once, so that a long run can be watched.
    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }

    func line(_ text: String) {
        Self.say(text)
    }

    /// Prints whether a bar held.
    func bar(_ name: String, _ holds: Bool, _ figures: String) {
        Self.say("  \(holds ? "held" : "MISSED"): \(name) (\(figures))")
        if !holds { self.bars.withLock { $0.append(name) } }
    }
}

/// Checks a condition until it holds; returns the time that it took, or `nil` if the limit is over before.
func time(within limit: Duration, until condition: () async throws -> Bool) async throws -> Duration? {
    let start = ContinuousClock.now
    while .now - start < limit {
        if try await condition() { return .now - start }
        try await Task.sleep(for: .milliseconds(20))
    }
    return nil
}

extension Duration {
    /// The duration in seconds, for a report.
    var text: String { self.formatted(.units(allowed: [.seconds], fractionalPart: .show(length: 2))) }
}
