// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency

/// The sources that were purged, by the beginnings of their URLs.
///
/// A purged source gets a new cache key, so that no older entry is served again. The old entries stay until they are
/// evicted.
final class PurgeList: Sendable {
    private struct State {
        /// The number of purges by the beginning of the URL; a whole URL ends with a line break.
        var counts: [String: Int] = [:]
        var lengths: Set<Int> = []
        /// The number of purges by this process.
        var changeCount = 0
    }

    /// The most purges to remember; with more, everything counts as purged once.
    private static let countLimit = 10_000

    private let state: Locked<State>
    private let file: URL?
    /// The number of purges by this process that the file contains.
    private let writtenCount = Locked(0)

    /// Reads the purges of earlier processes from a file in the cache's folder.
    init(file: URL?) {
        self.file = file
        var state = State()
        let text = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) } ?? ""
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            // Sums of larger counts would overflow.
            guard parts.count == 3, let count = Int(parts[0]), 1...1_000_000_000_000 ~= count else { continue }
            let name = String(parts[2]) + (parts[1] == "whole" ? "\n" : "")
            state.counts[name] = count
            state.lengths.insert(name.utf8.count)
        }
        self.state = Locked(state)
    }

    /// Returns the cache key of a source, or `nil` if it was never purged.
    func cacheKey(of source: String) -> String? {
        let count = self.state.withLock { state -> Int in
            guard !state.counts.isEmpty else { return 0 }
            let bytes = Array((source + "\n").utf8)
            return state.lengths.reduce(0) { sum, length in
                guard length <= bytes.count else { return sum }
                return sum + (state.counts[String(decoding: bytes[..<length], as: UTF8.self)] ?? 0)
            }
        }
        return count == 0 ? nil : "\(count) \(source)"
    }

    /// Purges one source.
    func purge(source: String) throws {
        try self.add(source + "\n")
    }

    /// Purges all sources whose URLs begin with `prefix`.
    func purge(prefix: String) throws {
        try self.add(prefix)
    }

    private func add(_ name: String) throws {
        let (text, changeCount) = self.state.withLock { state -> (String, Int) in
            if state.counts.count >= Self.countLimit {
                state.counts = ["": state.counts.values.reduce(0, +)]
                state.lengths = [0]
            }
            state.counts[name, default: 0] += 1
            state.lengths.insert(name.utf8.count)
            state.changeCount += 1
            guard self.file != nil else { return ("", state.changeCount) }
            let lines = state.counts.map { name, count in
                name.hasSuffix("\n") ? "\(count) whole \(name.dropLast())" : "\(count) prefix \(name)"
            }
            return (lines.joined(separator: "\n"), state.changeCount)
        }
        guard let file else { return }
        // If purges come at the same time, the last one writes all of them.
        try self.writtenCount.withLock { written in
            guard changeCount > written else { return }
            try Data(text.utf8).write(to: file, options: .atomic)
            written = changeCount
        }
    }
}
