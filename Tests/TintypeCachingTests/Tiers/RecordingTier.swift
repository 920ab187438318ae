// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeTestSupport

@testable import TintypeCaching

/// A byte tier in memory that records its calls, fails on demand, and holds calls.
final class RecordingTier: ByteTier {
    private struct State {
        var calls: [String] = []
        var entries: [CacheKey: ByteEntry] = [:]
        /// The turns that have begun and not ended.
        var turns: Set<TierTurn> = []
        var fails = false
        var hold: (@Sendable (String) async throws -> Void)?
    }

    let name: String
    private let byteLimit: Int
    private let state = Locked(State())

    init(_ name: String, byteLimit: Int = .max) {
        self.name = name
        self.byteLimit = byteLimit
    }

    /// The calls so far, in one line.
    var calls: String { self.state.withLock { $0.calls.joined(separator: ", ") } }

    /// The number of turns that have begun and not ended.
    var turnCount: Int { self.state.withLock { $0.turns.count } }

    /// Whether calls throw an error.
    var fails: Bool {
        get { self.state.withLock { $0.fails } }
        set { self.state.withLock { $0.fails = newValue } }
    }

    /// The data of the entry of `key`.
    subscript(key: CacheKey) -> Data? {
        get { self.state.withLock { $0.entries[key]?.data } }
        set {
            let entry = newValue.map { ByteEntry(data: $0, metadata: .sample) }
            self.state.withLock { $0.entries[key] = entry }
        }
    }

    /// Calls `hold` at the begin of each later call, with its name.
    func hold(_ hold: @escaping @Sendable (String) async throws -> Void) {
        self.state.withLock { $0.hold = hold }
    }

    func accepts(_ key: CacheKey, byteCount: Int) -> Bool { byteCount <= self.byteLimit }

    func entry(for key: CacheKey) async throws -> ByteEntry? {
        let turn = TierTurn.current
        if let turn { self.state.withLock { _ = $0.turns.insert(turn) } }
        return try await self.call("\(turn == nil ? "entry" : "take") \(key.text)") { $0[key] }
    }

    func endTurn(_ turn: TierTurn, for key: CacheKey, isCancelled: Bool) async {
        self.state.withLock { _ = $0.turns.remove(turn) }
        _ = try? await self.call(isCancelled ? "cancel \(key.text)" : "end \(key.text)") { _ in }
    }

    func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        try await self.call("metadata \(key.text)") { $0[key]?.metadata }
    }

    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        try await self.call("store \(key.text)") { $0[key] = ByteEntry(data: data, metadata: metadata) }
    }

    func remove(_ key: CacheKey) async throws -> Bool {
        try await self.call("remove \(key.text)") { $0.removeValue(forKey: key) != nil }
    }

    func removeFamily(of key: CacheKey) async throws -> Bool {
        try await self.call("removeFamily \(key.text)") { entries in
            let family = entries.keys.filter { $0.isOfFamily(of: key) }
            for key in family { entries[key] = nil }
            return !family.isEmpty
        }
    }

    func removeAll() async throws {
        try await self.call("removeAll") { $0 = [:] }
    }

    private func call<Value>(_ name: String, _ body: (inout [CacheKey: ByteEntry]) -> Value) async throws -> Value {
        let hold = self.state.withLock { state in
            state.calls.append(name.replacing("\n>", with: ">"))
            return state.hold
        }
        try await hold?(name)
        return try self.state.withLock { state in
            guard !state.fails else { throw TestSupportError("The service is down.") }
            return body(&state.entries)
        }
    }
}
