// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeRedis

/// The changes to shared entries, which all machines read to clear their own tiers.
///
/// It is a stream in Redis instead of a channel: a machine that was away reads the changes that it has missed.
final class ChangeLog: Sendable {
    /// The changes that the stream keeps, about.
    private static let lengthLimit = "10000"

    private let store: SharedStore
    private let owner = TaskOwner()

    init(_ store: SharedStore) {
        self.store = store
    }

    private var name: String { self.store.name("changes") }

    /// Tells the other machines that entries of a family have changed.
    func append(_ root: CacheKey) async throws {
        _ = try await self.store.run(
            "XADD",
            self.name,
            "MAXLEN",
            "~",
            Self.lengthLimit,
            "*",
            self.store.configuration.nodeName,
            root.text,
            key: self.name
        )
    }

    /// Calls `apply` with the families that other machines have changed and will change, until the log goes away.
    ///
    /// It begins with the oldest change in the stream: no change is missed between the start of a process and its first look,
    /// and a disk loses most of what has changed while the process was away.
    func follow(_ apply: @escaping @Sendable (CacheKey) async -> Void) {
        let (store, name) = (self.store, self.name)
        self.owner.run("changes of the cluster") {
            var last = "0-0"
            while !Task.isCancelled {
                if let next = try? await Self.read(store, name, after: last, apply) { last = next }
                try? await Task.sleep(for: store.configuration.changePeriod)
            }
        }
    }

    /// Ends the reading, and waits for its end.
    func shutdown() async {
        self.owner.cancelAll()
        await self.owner.waitForAll()
    }

    /// Applies the changes after an identifier; returns the last identifier.
    private static func read(
        _ store: SharedStore,
        _ name: String,
        after last: String,
        _ apply: @Sendable (CacheKey) async -> Void
    ) async throws -> String {
        var last = last
        while true {
            let value = try await store.run(
                "XRANGE",
                name,
                "(\(last)",
                "+",
                "COUNT",
                "500",
                key: name,
                isReadOnly: true
            )
            guard let changes = Change.changes(in: value), let end = changes.last else { return last }
            for change in changes where change.node != store.configuration.nodeName {
                await apply(CacheKey(change.text))
            }
            last = end.id
        }
    }
}

/// One change in the stream.
struct Change: Equatable {
    let id: String
    let node: String
    let text: String

    /// Reads the reply to `XRANGE`; `nil` for another reply.
    ///
    /// Leaves out entries of another form.
    static func changes(in value: RedisValue) -> [Change]? {
        guard case .array(let entries) = value else { return nil }
        return entries.compactMap { entry in
            guard case .array(let parts) = entry, parts.count == 2, let id = parts[0].text,
                case .array(let fields) = parts[1], fields.count == 2, let node = fields[0].text,
                let text = fields[1].text
            else { return nil }
            return Change(id: id, node: node, text: text)
        }
    }
}
