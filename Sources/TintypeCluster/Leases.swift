// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeConcurrency
import TintypeRedis

/// The locks in Redis that this process holds: while it makes an entry, the other machines wait for it.
///
/// A lock has the token of its owner and a lifetime, which the owner renews. So the lock of a dead owner expires by
/// itself, and a late owner never deletes the lock of another one (*Distributed Locks with Redis*, redis.io).
final class Leases: Sendable {
    /// The end of a lease, as its owner reports it to the other machines.
    enum End: String {
        /// The entry is in the store.
        case stored
        /// There is no entry, and another attempt would most likely fail, too.
        case nothing
        /// The owner was cancelled: another machine may take its place.
        case free
    }

    /// The result of an attempt to acquire a lock.
    private enum Attempt {
        case found(Data)
        case leads
        case isTaken
    }

    /// The place of an entry in Redis, and the turn of a load to make it.
    struct Place {
        let family: String
        let field: String
        /// The size of the entry for the time budget of its read.
        var byteCount = 0
        let turn: TierTurn

        /// The name of the lock, in the slot of the family.
        fileprivate var lock: String { Self.lock(family, field) }

        static func lock(_ family: String, _ field: String) -> String { "\(family):lock:\(field)" }
    }

    private struct Lease {
        let begin = ContinuousClock.now
        let token: String
        let family: String
        var turns: Set<TierTurn>
    }

    private struct State {
        var leases: [String: Lease] = [:]
        var isRenewing = false
        var waitCount = 0
    }

    /// The number of loads that may wait at once; further ones continue without the other machine.
    static let waitCountLimit = 128

    /// The time after which a load counts as stuck, and its lock is not renewed.
    private static let longestTime = Duration.seconds(120)

    private static let attempt = """
        local value = redis.call('HGET', KEYS[1], ARGV[1])
        if value then return value end
        if redis.call('SET', KEYS[2], ARGV[2], 'NX', 'PX', ARGV[3]) then return 1 end
        local left = redis.call('PTTL', KEYS[2])
        if left < 0 or left > 10 * ARGV[3] then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
        return 0
        """
    private static let renewal = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
        return 0
        """
    private static let release = """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        redis.call('DEL', KEYS[1])
        redis.call('PUBLISH', KEYS[1], ARGV[2])
        return 1
        """

    private let store: SharedStore
    private let state = Locked(State())
    private let renewals = TaskOwner()
    private let releases = TaskOwner()
    /// Repeats the releases that Redis has not confirmed.
    private let lateReleases = TaskOwner()

    init(_ store: SharedStore) {
        self.store = store
    }

    /// The number of locks that this process holds.
    var count: Int { self.state.withLock { $0.leases.count } }

    /// Returns the entry at a place; `nil` if the caller must make it.
    ///
    /// Waits while another machine is making it, at most for ``Cluster/Configuration/waitLimit``. After that the caller
    /// makes the entry without a lock.
    func data(at place: Place) async throws -> Data? {
        let data = try await self.wait(at: place)
        // If two attempts ran at once, one may have the lock although the other one has found the entry.
        if data != nil { await self.end(place, .stored) }
        return data
    }

    private func wait(at place: Place) async throws -> Data? {
        switch try await self.attempt(place) {
        case .found(let data): return data
        case .leads: return nil
        case .isTaken: break
        }
        guard self.beginWait() else {
            self.store.count { $0.waitsOver += 1 }
            return nil
        }
        defer { self.endWait() }
        self.store.count { $0.waits += 1 }
        let messages = try self.store.messages(on: place.lock)
        let end = place.turn.start + self.store.configuration.waitLimit
        return try await withThrowingTaskGroup(of: Data?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await message in messages {
                    let end = message.flatMap { End(rawValue: String(decoding: $0, as: UTF8.self)) }
                    // Waiting for another owner would not help: make the entry without a lock.
                    if end == .nothing { return nil }
                    if let data = try await self.poll(place) { return data }
                }
                // The client has been shut down.
                return nil
            }
            group.addTask {
                // Messages may be lost.
                while .now < end {
                    let pause = Duration.milliseconds(Int64.random(in: 200...400))
                    try await Task.sleep(until: min(end, .now + pause))
                    if let data = try await self.poll(place) { return data }
                }
                self.store.count { $0.waitsOver += 1 }
                return nil
            }
            return try await group.next() ?? nil
        }
    }

    /// Returns `nil` to wait on, and an optional entry to end the wait.
    private func poll(_ place: Place) async throws -> Data?? {
        do {
            switch try await self.attempt(place) {
            case .found(let data): return .some(data)
            case .leads: return .some(nil)
            case .isTaken: return nil
            }
        } catch is CacheError where !self.store.isCircuitOpen() {
            // If one slow reply ended the wait, a pause of Redis would send all waiting loads to their origins.
            return nil
        }
    }

    private func attempt(_ place: Place) async throws -> Attempt {
        // A load of this process is already making the entry.
        if let isNew = self.join(place) {
            // If the load has the lock already, it needs the lock, although this one of its attempts was cancelled.
            if isNew, Task.isCancelled { await self.end(place, .free) }
            return .leads
        }
        let token = UUID().uuidString
        let lifetime = "\(self.store.configuration.leaseLifetime.milliseconds)"
        let value: RedisValue
        do {
            value = try await self.attempt(place, token, lifetime)
        } catch {
            // Redis may have granted the lock nevertheless.
            if SharedStore.mayHaveRun(error) {
                let lease = Lease(token: token, family: place.family, turns: [])
                self.releases.run("lease release") { [weak self] in await self?.release(place.lock, lease, .free) }
            }
            throw error
        }
        switch value {
        case .bytes(let data): return .found(data)
        case .integer(1):
            self.hold(place, token)
            // The end of the turn may have come before.
            if Task.isCancelled { await self.end(place, .free) }
            return .leads
        case .integer(0): return .isTaken
        // No server that this cluster can use answers so: make the entry without a lock.
        default: return .leads
        }
    }

    private func attempt(_ place: Place, _ token: String, _ lifetime: String) async throws -> RedisValue {
        let words = ["2", place.family, place.lock, place.field, token, lifetime]
        let command = RedisCommand(
            "EVAL",
            arguments: ([Self.attempt] + words).map { .text($0) },
            key: place.family
        )
        return try await self.store.run(command, byteCount: place.byteCount)
    }

    /// Ends a turn's share in a lease, and releases the lock with the last share.
    func end(_ place: Place, _ end: End) async {
        guard let lease = self.leave(place) else { return }
        // A task that was cancelled could not send the command.
        await self.releases.run("lease release") { await self.release(place.lock, lease, end) }.value
    }

    /// Releases the lock of an entry that is in the store now.
    func endStored(_ family: String, _ field: String) async {
        let lock = Place.lock(family, field)
        guard let lease = self.take(lock) else { return }
        await self.releases.run("lease release") { await self.release(lock, lease, .stored) }.value
    }

    /// Releases a lock, and repeats that in the background until Redis confirms it.
    ///
    /// If the circuit opens for a moment, the other machines would otherwise wait until the lock expires.
    private func release(_ lock: String, _ lease: Lease, _ end: End) async {
        guard await !self.sendRelease(lock, lease, end) else { return }
        let limit = ContinuousClock.now + self.store.configuration.leaseLifetime
        self.lateReleases.run("late lease release") { [weak self] in
            while .now < limit, (try? await Task.sleep(for: Circuit.shortestPause)) != nil {
                guard let self, await !self.sendRelease(lock, lease, end) else { return }
            }
        }
    }

    /// Sends a release once, and returns whether Redis has confirmed it.
    private func sendRelease(_ lock: String, _ lease: Lease, _ end: End) async -> Bool {
        let reply = try? await self.store.run(
            "EVAL",
            Self.release,
            "1",
            lock,
            lease.token,
            end.rawValue,
            key: lease.family
        )
        return reply != nil
    }

    /// Releases all locks.
    func endAll() async {
        self.renewals.cancelAll()
        await self.renewals.waitForAll()
        await self.releases.waitForAll()
        // A lock that cannot be released now expires by itself.
        for (lock, lease) in self.takeAll() { _ = await self.sendRelease(lock, lease, .free) }
        self.lateReleases.cancelAll()
        await self.lateReleases.waitForAll()
    }

    // MARK: Renewal

    private func renew() async {
        while self.hasLeases() {
            do {
                try await Task.sleep(for: self.store.configuration.leaseLifetime / 3)
            } catch {
                return
            }
            let leases = self.held()
            let lifetime = "\(self.store.configuration.leaseLifetime.milliseconds)"
            await withTaskGroup(of: Void.self) { group in
                for (lock, lease) in leases where self.isRenewed(lock, lease) {
                    group.addTask {
                        // If it fails, the next renewal may still come in time.
                        _ = try? await self.store.run(
                            "EVAL",
                            Self.renewal,
                            "1",
                            lock,
                            lease.token,
                            lifetime,
                            key: lease.family
                        )
                    }
                }
            }
        }
    }

    // MARK: State

    // No function that takes the lock is inlined into an asynchronous one; see `SharedTask`.

    @inline(never)
    private func beginWait() -> Bool {
        self.state.withLock { state in
            guard state.waitCount < Self.waitCountLimit else { return false }
            state.waitCount += 1
            return true
        }
    }

    @inline(never)
    private func endWait() {
        self.state.withLock { $0.waitCount -= 1 }
    }

    /// Returns whether the turn is new to the lease; `nil` if there is no lease.
    @inline(never)
    private func join(_ place: Place) -> Bool? {
        self.state.withLock { $0.leases[place.lock]?.turns.insert(place.turn).inserted }
    }

    @inline(never)
    private func hold(_ place: Place, _ token: String) {
        let begins = self.state.withLock { state in
            state.leases[place.lock] = Lease(token: token, family: place.family, turns: [place.turn])
            defer { state.isRenewing = true }
            return !state.isRenewing
        }
        if begins { self.renewals.run("lease renewal") { [weak self] in await self?.renew() } }
    }

    @inline(never)
    private func leave(_ place: Place) -> Lease? {
        self.state.withLock { state in
            guard state.leases[place.lock]?.turns.remove(place.turn) != nil,
                state.leases[place.lock]?.turns.isEmpty == true
            else { return nil }
            return state.leases.removeValue(forKey: place.lock)
        }
    }

    @inline(never)
    private func take(_ lock: String) -> Lease? { self.state.withLock { $0.leases.removeValue(forKey: lock) } }

    @inline(never)
    private func takeAll() -> [String: Lease] {
        self.state.withLock { state in
            defer { state.leases = [:] }
            return state.leases
        }
    }

    /// Whether there are leases; if not, the renewal ends.
    @inline(never)
    private func hasLeases() -> Bool {
        self.state.withLock { state in
            state.isRenewing = !state.leases.isEmpty
            return state.isRenewing
        }
    }

    @inline(never)
    private func held() -> [String: Lease] { self.state.withLock(\.leases) }

    @inline(never)
    private func isRenewed(_ lock: String, _ lease: Lease) -> Bool {
        self.state.withLock { state in
            guard state.leases[lock]?.token == lease.token else { return false }
            guard .now - lease.begin < Self.longestTime else {
                state.leases[lock] = nil
                return false
            }
            return true
        }
    }
}

extension Duration {
    var milliseconds: Int64 {
        let (seconds, attoseconds) = self.components
        return seconds * 1_000 + attoseconds / 1_000_000_000_000_000
    }
}
