// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// The sources that were purged, by the beginnings of their URLs.
///
/// A purged source gets a new cache key, so that no older entry is served again. The old entries stay until they are
/// evicted.
final class PurgeList: Sendable {
    /// The moment of a purge; a later purge has a later moment.
    struct Moment: Comparable {
        /// Milliseconds since 1970, and the number of the purge within that millisecond.
        let milliseconds: UInt64
        var number: UInt64 = 0

        static func < (left: Moment, right: Moment) -> Bool {
            (left.milliseconds, left.number) < (right.milliseconds, right.number)
        }
    }

    private struct State {
        /// The last purge by the beginning of the URL; a whole URL ends with a line break.
        var moments: [String: Moment] = [:]
        var lengths: Set<Int> = []
        /// The number of changes since the start of this process.
        var changeCount = 0

        mutating func add(_ moment: Moment, _ name: String) {
            self.moments[name] = max(self.moments[name] ?? moment, moment)
            self.lengths.insert(name.utf8.count)
        }
    }

    /// The most purges to remember; with more, everything counts as purged by the last one.
    private static let countLimit = 10_000

    private let state: Locked<State>
    private let file: URL?
    /// The number of changes since the start of this process that the file contains.
    private let writtenCount = Locked(0)

    /// Reads the purges of earlier processes from a file in the cache's folder.
    init(file: URL?) {
        self.file = file
        var state = State()
        let text = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) } ?? ""
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, let moment = Moment(parts[0]), let name = Self.name(parts[1], parts[2]) else {
                continue
            }
            state.add(moment, name)
        }
        self.state = Locked(state)
    }

    /// Returns the cache key of a source, or `nil` if it was never purged.
    func cacheKey(of source: String) -> String? {
        let last = self.state.withLock { state -> Moment? in
            guard !state.moments.isEmpty else { return nil }
            let bytes = Array((source + "\n").utf8)
            return state.lengths.compactMap { length in
                length <= bytes.count ? state.moments[String(decoding: bytes[..<length], as: UTF8.self)] : nil
            }.max()
        }
        return last.map { "\($0) \(source)" }
    }

    /// Purges a source, or all sources whose URLs begin with a prefix.
    ///
    /// - Parameters:
    ///   - line: `source URL` or `prefix URL`; another line does nothing.
    ///   - moment: The moment that the cluster has given the purge; `nil` for now.
    /// - Throws: If the file cannot be written.
    func purge(_ line: String, at moment: Moment? = nil) throws {
        try self.purge([(line, moment)])
    }

    /// Purges the sources of many lines, and writes the file once.
    func purge(_ purges: [(line: String, moment: Moment?)]) throws {
        let change = self.state.withLock { state -> (text: String, count: Int)? in
            let isChanged = purges.reduce(false) { self.add($1.line, at: $1.moment, to: &state) || $0 }
            guard isChanged, self.file != nil else { return nil }
            state.changeCount += 1
            let lines = state.moments.map { name, moment in
                name.hasSuffix("\n") ? "\(moment) source \(name.dropLast())" : "\(moment) prefix \(name)"
            }
            return (lines.joined(separator: "\n"), state.changeCount)
        }
        guard let file, let change else { return }
        // If purges come at the same time, the last one writes all of them.
        try self.writtenCount.withLock { written in
            guard change.count > written else { return }
            try Data(change.text.utf8).write(to: file, options: .atomic)
            written = change.count
        }
    }

    /// Adds one purge; returns false if it is known.
    private func add(_ line: String, at moment: Moment?, to state: inout State) -> Bool {
        let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        // A line break would forge another line of the file.
        guard parts.count == 2, !parts[1].utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }),
            let name = Self.name(parts[0], parts[1])
        else { return false }
        // After a moment in the future, later purges would count as known.
        if let moment, moment > .latest { return false }
        if let moment, let known = state.moments[name], known >= moment { return false }
        let moment = moment ?? .after(state.moments.values.max())
        if state.moments.count >= Self.countLimit {
            let last = state.moments.values.reduce(moment) { max($0, $1) }
            state.moments = [:]
            state.lengths = []
            state.add(last, "")
        }
        state.add(moment, name)
        return true
    }

    private static func name(_ kind: Substring, _ url: Substring) -> String? {
        switch kind {
        case "source": "\(url)\n"
        case "prefix": String(url)
        default: nil
        }
    }
}

extension PurgeList.Moment: CustomStringConvertible {
    /// The form of an identifier in a stream of Redis, such as `1732800000123-0`.
    var description: String { "\(self.milliseconds)-\(self.number)" }

    init?(_ description: some StringProtocol) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let milliseconds = UInt64(parts[0]), let number = UInt64(parts[1]) else { return nil }
        self.init(milliseconds: milliseconds, number: number)
    }

    /// The latest moment that a purge from another machine may have: a day from now.
    static var latest: Self {
        Self(milliseconds: UInt64(max(0, (Date().timeIntervalSince1970 + 86_400) * 1_000)))
    }

    /// Now, or the next moment after `last` if the clock is behind it.
    static func after(_ last: Self?) -> Self {
        let now = Self(milliseconds: UInt64(max(0, Date().timeIntervalSince1970 * 1_000)))
        guard let last, last >= now else { return now }
        return Self(milliseconds: last.milliseconds, number: last.number &+ 1)
    }
}
