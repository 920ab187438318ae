// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeRedis

/// The byte tier of a ``Cluster`` in Redis: originals, and the results made from them.
///
/// A family of keys is one hash: the original and its variants are fields of it. So one command removes all of them,
/// and Redis evicts them together. While one machine makes an entry, loads on the others wait for it.
final class SharedTier: ByteTier {
    /// The client refuses longer replies, which have the metadata as well.
    private static let largestEntry = 120 << 20

    let name = "redis"
    private let store: SharedStore
    private let leases: Leases
    private let changes: ChangeLog

    init(_ store: SharedStore, _ leases: Leases, _ changes: ChangeLog) {
        self.store = store
        self.leases = leases
        self.changes = changes
    }

    /// The time for which a load may wait for another machine, and some time to read the result.
    var timeBudget: Duration? { self.store.configuration.waitLimit + .seconds(2) }

    /// Accepts entries up to ``Cluster/Configuration/maximumEntrySize``, derived ones as well.
    func accepts(_ key: CacheKey, byteCount: Int) -> Bool {
        byteCount <= min(self.store.configuration.maximumEntrySize, Self.largestEntry)
    }

    // MARK: Reading

    /// Returns the entry of `key`, and lets a load wait for it if another machine is making it.
    ///
    /// Waits at most for ``Cluster/Configuration/waitLimit``. After that, the load continues without the other machine.
    func entry(for key: CacheKey) async throws -> ByteEntry? {
        if let entry = try await self.storedEntry(of: key) { return entry }
        guard let turn = TierTurn.current else { return nil }
        let data = try await self.leases.data(at: self.place(of: key, turn))
        return data.flatMap { self.entry($0, for: key) }
    }

    private func storedEntry(of key: CacheKey) async throws -> ByteEntry? {
        let family = self.store.family(of: key)
        let command = RedisCommand(
            "HGET",
            .text(family),
            .text(self.store.field(of: key)),
            key: family,
            isReadOnly: true
        )
        let value = try await self.store.run(command, byteCount: self.likelyByteCount(of: key))
        guard case .bytes(let data) = value else {
            self.store.count { $0.misses += 1 }
            return nil
        }
        return self.entry(data, for: key)
    }

    /// Returns the metadata from a field of its own, because an original may have megabytes.
    func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        let family = self.store.family(of: key)
        let value = try await self.store.run("HGET", family, self.head(of: key), key: family, isReadOnly: true)
        guard case .bytes(let data) = value else { return nil }
        return ByteEntry(encoded: data, for: key)?.metadata
    }

    /// The field of an entry without its bytes.
    ///
    /// A revision may be any text, and ends the field of a derived entry. So the mark of a head comes first.
    private func head(of key: CacheKey) -> String { "head-\(self.store.field(of: key))" }

    func endTurn(_ turn: TierTurn, for key: CacheKey, isCancelled: Bool) async {
        await self.leases.end(self.place(of: key, turn), isCancelled ? .free : .nothing)
    }

    private func place(of key: CacheKey, _ turn: TierTurn) -> Leases.Place {
        Leases.Place(
            family: self.store.family(of: key),
            field: self.store.field(of: key),
            byteCount: self.likelyByteCount(of: key),
            turn: turn
        )
    }

    /// The size of an entry for the time budget of its read: results are small, and originals may be as large as
    /// permitted.
    private func likelyByteCount(of key: CacheKey) -> Int {
        let limit = self.store.configuration.maximumEntrySize
        return key.isDerived ? min(limit, 512 << 10) : limit
    }

    /// Returns an entry, or `nil` for bytes that are damaged or that another program has written.
    private func entry(_ data: Data, for key: CacheKey) -> ByteEntry? {
        // No load stores an entry without bytes; only heads have none.
        let entry = ByteEntry(encoded: data, for: key).flatMap { $0.data.isEmpty ? nil : $0 }
        self.store.count { counts in
            if entry == nil { counts.damagedEntries += 1 } else { counts.hits += 1 }
        }
        return entry
    }

    // MARK: Writing

    func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        let (family, field) = (self.store.family(of: key), self.store.field(of: key))
        let entry = ByteEntry(data: data, metadata: metadata).encoded(for: key)
        let head = ByteEntry(data: Data(), metadata: metadata).encoded(for: key)
        let newCount = try await self.store.set(
            [(field, entry), (self.head(of: key), head)],
            of: family,
            lifetime: self.store.configuration.entryLifetime
        )
        await self.leases.endStored(family, field)
        // Other machines may have the older entry in memory or on disk.
        if newCount == 0 { try await self.changes.append(key.root.text) }
        // A source without its tags is still a good entry.
        for tag in metadata.tags { try? await self.note(key.root, under: tag) }
    }

    func remove(_ key: CacheKey) async throws -> Bool {
        let family = self.store.family(of: key)
        let fields = (self.store.field(of: key), self.head(of: key))
        let count = try await self.store.run("HDEL", family, fields.0, fields.1, key: family)
        try await self.changes.append(key.root.text)
        return count != .integer(0)
    }

    func removeFamily(of key: CacheKey) async throws -> Bool {
        let family = self.store.family(of: key)
        let count = try await self.store.run("UNLINK", family, key: family)
        try await self.changes.append(key.root.text)
        return count == .integer(1)
    }

    // MARK: Tags

    /// Records that a family has a tag of its origin.
    private func note(_ root: CacheKey, under tag: String) async throws {
        let (name, lifetime) = (self.tagName(tag), "\(self.store.configuration.entryLifetime.milliseconds)")
        _ = try await self.store.run("EVAL", Self.noting, "1", name, lifetime, root.text, key: name)
    }

    /// Adds a family, and removes families whose entries have expired, so that the list of a busy tag does not grow without
    /// limit.
    private static let noting = """
        local now = redis.call('TIME')[1] * 1000
        redis.call('ZADD', KEYS[1], now, ARGV[2])
        redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1])
        redis.call('PEXPIRE', KEYS[1], ARGV[1])
        return 1
        """

    /// The name of the sorted set of the families that have a tag, by the time of the last store.
    private func tagName(_ tag: String) -> String { self.store.name("tags", tag) }

    /// The cursor before the first families of a tag, and after the last ones.
    static let startCursor = "0"

    /// Returns some families that have a tag, and the cursor of the next ones.
    ///
    /// A scan ends, although loads may add families meanwhile.
    func families(tagged tag: String, from cursor: String) async throws -> (families: [CacheKey], next: String) {
        let name = self.tagName(tag)
        let reply = try await self.store.run("ZSCAN", name, cursor, "COUNT", "50", key: name, isReadOnly: true)
        guard let parts = reply.elements, parts.count == 2, let next = parts[0].text else {
            throw CacheError(code: .tierFailed, message: "Redis has not listed the sources of the tag \(tag).")
        }
        // A score follows each member.
        let members = (parts[1].elements ?? []).enumerated().filter { $0.offset.isMultiple(of: 2) }
        return (members.compactMap(\.element.text).map { CacheKey($0) }, next)
    }

    /// Forgets that removed families have a tag.
    func forget(_ families: [CacheKey], tagged tag: String) async throws {
        guard !families.isEmpty else { return }
        let name = self.tagName(tag)
        let words = [name] + families.map(\.text)
        _ = try await self.store.run(RedisCommand("ZREM", arguments: words.map { .text($0) }, key: name))
        // A load may have stored a family again before its tag was removed.
        for root in families {
            let family = self.store.family(of: root)
            let count = try? await self.store.run("EXISTS", family, key: family, isReadOnly: true)
            if count != .integer(0) { try await self.note(root, under: tag) }
        }
    }
}

extension EntryMetadata {
    /// The tags that the origin gives its response in `Cache-Tag` or `Surrogate-Key`.
    fileprivate var tags: Set<String> {
        guard let response else { return [] }
        let commas = response.values(for: "Cache-Tag").flatMap { $0.split(separator: ",") }
        let spaces = response.values(for: "Surrogate-Key").flatMap { $0.split(separator: " ") }
        let tags = (commas + spaces).prefix(64).map { String($0.drop { $0 == " " }) }
        return Set(tags.filter { (1...Cluster.longestTag).contains($0.utf8.count) })
    }
}
