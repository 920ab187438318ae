// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Tintype
import TintypeConcurrency
import TintypeRedis

/// The changes that all machines of a cluster must learn of, in order.
///
/// It is a stream in Redis instead of a channel: a machine that was away reads the changes that it has missed.
final class ChangeLog: Sendable {
    /// The approximate number of changes in the stream, unless it keeps them by age.
    private static let lengthLimit = "10000"
    /// The most changes to read at once.
    private static let largestBatch = 500
    /// The bytes of a batch for which a read has time: the average change of a large batch has 8 kB.
    private static let batchBytes = 4 << 20

    private let store: SharedStore
    private let name: String
    private let keepsByAge: Bool
    private let owner = TaskOwner()
    /// The number of changes to read at once; smaller after reads that took too long.
    let batchCount = Atomic(ChangeLog.largestBatch)

    /// Creates a log whose stream has the name `name`.
    ///
    /// If it keeps changes by age, they live as long as an entry may. Otherwise it has about the last 10,000 changes.
    init(_ store: SharedStore, _ name: String, keepsByAge: Bool = false) {
        (self.store, self.name, self.keepsByAge) = (store, store.name(name), keepsByAge)
    }

    /// Appends a change for the other machines; returns its identifier, which is greater than all earlier ones.
    @discardableResult
    func append(_ text: String) async throws -> String {
        let limit = self.keepsByAge ? [] : ["MAXLEN", "~", Self.lengthLimit]
        let words = [self.name] + limit + ["*", self.store.configuration.nodeName, text]
        let reply = try await self.store.run(
            RedisCommand("XADD", arguments: words.map { .text($0) }, key: self.name)
        )
        guard let identifier = reply.text else {
            throw CacheError(code: .tierFailed, message: "Redis has given a change no identifier.")
        }
        if self.keepsByAge { await self.trim(before: identifier) }
        return identifier
    }

    /// Removes the changes that are older than any entry can be at the moment of a change.
    ///
    /// The moment comes from Redis, because a server whose clock is ahead must not remove changes that others need.
    private func trim(before identifier: String) async {
        guard let moment = identifier.split(separator: "-").first.flatMap({ Int64($0) }) else { return }
        let oldest = "\(max(0, moment - self.store.configuration.entryLifetime.milliseconds))"
        // The next change makes up for a trim that fails.
        _ = try? await self.store.run("XTRIM", self.name, "MINID", "~", oldest, key: self.name)
    }

    /// Calls `apply` with the changes after `last`, present and future, until the log is released.
    ///
    /// By default it begins with the oldest change. So it misses no change between the start of a process and its first
    /// read, and the disk loses most entries that changed while the process was away.
    func follow(after last: String = Change.start, _ apply: @escaping @Sendable ([Change]?) async -> Void) {
        let period = self.store.configuration.changePeriod
        // The log owns the task, so the task must not keep the log.
        self.owner.run("changes of the cluster") { [weak self] in
            var last = last
            while !Task.isCancelled {
                try? await self?.apply(apply, after: &last)
                try? await Task.sleep(for: period)
            }
        }
    }

    /// Calls `apply` with the changes that are in the stream now, in batches, and moves `last` to the end of them.
    ///
    /// If the stream has removed changes that were not read, `apply` gets `nil` and then the remaining changes.
    ///
    /// It stops at `end`, with changes left, if others append them faster than this.
    func apply(
        _ apply: @Sendable ([Change]?) async -> Void,
        after last: inout String,
        until end: ContinuousClock.Instant? = nil
    ) async throws {
        while end.map({ .now < $0 }) ?? true {
            let batchCount = self.batchCount.load(ordering: .relaxed)
            var entries = try await self.entries(from: last, count: batchCount + 1)
            if last != Change.start {
                guard entries.first?.id == last else {
                    // If this reader was too slow, all remaining changes are newer. Otherwise Redis has lost the last
                    // changes or the whole stream, and may count from an earlier moment.
                    if entries.count > batchCount, try await self.hasOnlyChanges(after: last) { await apply(nil) }
                    last = Change.start
                    continue
                }
                entries.removeFirst()
            }
            guard let newest = entries.last?.id else { return }
            await apply(entries.compactMap(\.change))
            last = newest
        }
    }

    /// Ends the reading, and waits for its end.
    func shutdown() async {
        self.owner.cancelAll()
        await self.owner.waitForAll()
    }

    /// Returns whether the stream has more than a batch of changes, all of them later than `last`.
    private func hasOnlyChanges(after last: String) async throws -> Bool {
        let length = try await self.store.run("XLEN", self.name, key: self.name, isReadOnly: true).number ?? 0
        let words = [self.name, "-", last, "COUNT", "1"]
        let command = RedisCommand("XRANGE", arguments: words.map { .text($0) }, key: self.name, isReadOnly: true)
        let earlier = Change.entries(in: try await self.store.run(command))
        return length > Self.largestBatch && earlier.isEmpty
    }

    private func entries(from identifier: String, count: Int) async throws -> [(id: String, change: Change?)] {
        let words = [self.name, identifier, "+", "COUNT", "\(count)"]
        let command = RedisCommand("XRANGE", arguments: words.map { .text($0) }, key: self.name, isReadOnly: true)
        do {
            let reply = try await self.store.run(command, byteCount: Self.batchBytes)
            self.batchCount.store(min(2 * count, Self.largestBatch), ordering: .relaxed)
            return Change.entries(in: reply)
        } catch let error as CacheError where error.code == .tierTimedOut {
            self.batchCount.store(max(1, count / 4), ordering: .relaxed)
            throw error
        }
    }
}

/// One change in the stream.
struct Change: Equatable {
    /// The identifier before the first change.
    static let start = "0-0"

    let id: String
    let node: String
    let text: String

    /// Reads the reply to `XRANGE`: the identifier of each entry and its change, or `nil` for an entry of another form.
    static func entries(in value: RedisValue) -> [(id: String, change: Change?)] {
        (value.elements ?? []).compactMap { entry in
            guard let parts = entry.elements, let id = parts.first?.text else { return nil }
            guard parts.count == 2, let fields = parts[1].elements, fields.count == 2, let node = fields[0].text,
                let text = fields[1].text
            else { return (id, nil) }
            return (id, Change(id: id, node: node, text: text))
        }
    }
}
