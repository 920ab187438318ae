// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeRedis

/// Changes that all machines of a cluster must hear of, in their order.
///
/// It is a stream in Redis instead of a channel: a machine that was away reads the changes that it has missed.
final class ChangeLog: Sendable {
    /// The changes that the stream keeps, about.
    private static let lengthLimit = "10000"

    private let store: SharedStore
    private let name: String
    private let owner = TaskOwner()

    /// Creates a log whose stream has the name `name`.
    init(_ store: SharedStore, _ name: String) {
        (self.store, self.name) = (store, store.name(name))
    }

    /// Tells the other machines of a change; returns its identifier, which is greater than those before.
    @discardableResult
    func append(_ text: String) async throws -> String {
        let reply = try await self.store.run(
            "XADD",
            self.name,
            "MAXLEN",
            "~",
            Self.lengthLimit,
            "*",
            self.store.configuration.nodeName,
            text,
            key: self.name
        )
        guard let identifier = reply.text else {
            throw CacheError(code: .tierFailed, message: "Redis has given a change no identifier.")
        }
        return identifier
    }

    /// Calls `apply` with the changes after `last` that are in the stream or will be, until the log goes away.
    ///
    /// By default it begins with the oldest change: none is missed between the start of a process and its first look, and a
    /// disk loses most of what has changed while the process was away.
    func follow(after last: String = Change.start, _ apply: @escaping @Sendable ([Change]) async -> Void) {
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

    /// Calls `apply` with the changes that are in the stream now, some at a time, and moves `last` to the end of them.
    func apply(_ apply: @Sendable ([Change]) async -> Void, after last: inout String) async throws {
        while let (changes, end) = try await self.changes(after: last) {
            await apply(changes)
            last = end
        }
    }

    /// Ends the reading, and waits for its end.
    func shutdown() async {
        self.owner.cancelAll()
        await self.owner.waitForAll()
    }

    private func changes(after last: String) async throws -> (changes: [Change], end: String)? {
        let reply = try await self.store.run(
            "XRANGE",
            self.name,
            "(\(last)",
            "+",
            "COUNT",
            "500",
            key: self.name,
            isReadOnly: true
        )
        return Change.changes(in: reply)
    }
}

/// One change in the stream.
struct Change: Equatable {
    /// The identifier before the first change.
    static let start = "0-0"

    let id: String
    let node: String
    let text: String

    /// Reads the reply to `XRANGE`: the changes and the last identifier; `nil` if it is empty, or another reply.
    ///
    /// Leaves out entries of another form.
    static func changes(in value: RedisValue) -> (changes: [Change], end: String)? {
        guard case .array(let entries) = value, let end = entries.last?.elements?.first?.text else { return nil }
        let changes = entries.compactMap { entry -> Change? in
            guard case .array(let parts) = entry, parts.count == 2, let id = parts[0].text,
                case .array(let fields) = parts[1], fields.count == 2, let node = fields[0].text,
                let text = fields[1].text
            else { return nil }
            return Change(id: id, node: node, text: text)
        }
        return (changes, end)
    }
}
