// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeRedis
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCluster

@Suite(.waiting, .timeLimit(.minutes(5))) struct LeasesTests {
    private func makeStore(
        _ redis: RedisServer,
        change: (inout Cluster.Configuration) -> Void = { _ in }
    ) throws -> SharedStore {
        var configuration = try Cluster.Configuration(redis)
        change(&configuration)
        return SharedStore(configuration)
    }

    private func makePlace(_ field: String = "b") -> Leases.Place {
        Leases.Place(family: "{a}", field: field, turn: TierTurn())
    }

    @Test func `a late owner does not delete the lock of another owner`() async throws {
        let redis = try await RedisServer()
        let (first, second) = (try self.makeStore(redis), try self.makeStore(redis))
        let (early, late) = (Leases(first), Leases(second))
        let (earlyPlace, latePlace) = (self.makePlace(), self.makePlace())
        #expect(try await early.data(at: earlyPlace) == nil)
        // The lock of the first owner ends, as if the owner had been stopped for too long.
        _ = try await first.run("DEL", "{a}:lock:b", key: "{a}")
        #expect(try await late.data(at: latePlace) == nil)
        let token = try await second.run("GET", "{a}:lock:b", key: "{a}")
        await early.end(earlyPlace, .nothing)
        #expect(try await second.run("GET", "{a}:lock:b", key: "{a}") == token)
        #expect(token != .null)
        await late.end(latePlace, .nothing)
        #expect(try await second.run("GET", "{a}:lock:b", key: "{a}") == .null)
        await first.redis.shutdown()
        await second.redis.shutdown()
    }

    @Test func `an owner renews its lock, and a dead owner loses it`() async throws {
        let redis = try await RedisServer()
        let first = try self.makeStore(redis) { $0.leaseLifetime = .seconds(4) }
        let second = try self.makeStore(redis) { $0.waitLimit = .seconds(600) }
        let (owner, follower) = (Leases(first), Leases(second))
        #expect(try await owner.data(at: self.makePlace()) == nil)
        let token = try await second.run("GET", "{a}:lock:b", key: "{a}")
        // The time to live falls until a renewal raises it.
        var rest = Int64.max
        await until {
            let earlier = rest
            rest = (try? await second.run("PTTL", "{a}:lock:b", key: "{a}").number) ?? .max
            return rest > earlier
        }
        #expect(try await second.run("GET", "{a}:lock:b", key: "{a}") == token)
        // The process of the owner dies: nobody renews the lock or releases it.
        await first.redis.shutdown()
        #expect(try await follower.data(at: self.makePlace()) == nil)
        #expect(try await second.run("GET", "{a}:lock:b", key: "{a}") != token)
        await second.redis.shutdown()
    }

    @Test(arguments: [
        ["SET", "{a}:lock:b", "x"], ["SET", "{a}:lock:b", "x", "EX", "864000"], ["LPUSH", "{a}:lock:b", "x"],
    ])
    func `a lock that no owner made expires`(command: [String]) async throws {
        let redis = try await RedisServer()
        let store = try self.makeStore(redis) {
            $0.leaseLifetime = .milliseconds(300)
            $0.waitLimit = .seconds(600)
        }
        _ = try await store.run(RedisCommand(command[0], arguments: command.dropFirst().map { .text($0) }, key: "{a}"))
        let (leases, place) = (Leases(store), self.makePlace())
        #expect(try await leases.data(at: place) == nil)
        #expect(leases.count == 1)
        await leases.end(place, .nothing)
        await store.redis.shutdown()
    }

    @Test func `a follower that has waited for its time goes on without the lock`() async throws {
        let redis = try await RedisServer()
        let first = try self.makeStore(redis)
        let second = try self.makeStore(redis) { $0.waitLimit = .milliseconds(50) }
        let (owner, follower) = (Leases(first), Leases(second))
        #expect(try await owner.data(at: self.makePlace()) == nil)
        #expect(try await follower.data(at: self.makePlace()) == nil)
        #expect(follower.count == 0 && owner.count == 1)
        #expect(second.statistics().waits == 1 && second.statistics().waitsOver == 1)
        await owner.endAll()
        #expect(try await second.run("GET", "{a}:lock:b", key: "{a}") == .null)
        await first.redis.shutdown()
        await second.redis.shutdown()
    }

    @Test func `a load that has waited for one entry waits for the next one only as long as is left`() async throws {
        let redis = try await RedisServer()
        let (first, second) = (try self.makeStore(redis), try self.makeStore(redis) { $0.waitLimit = .seconds(600) })
        let (owner, follower) = (Leases(first), Leases(second))
        #expect(try await owner.data(at: self.makePlace()) == nil)
        var turn = TierTurn()
        turn.start -= .seconds(600)
        #expect(try await follower.data(at: Leases.Place(family: "{a}", field: "b", turn: turn)) == nil)
        #expect(second.statistics().waitsOver == 1)
        await owner.endAll()
        await first.redis.shutdown()
        await second.redis.shutdown()
    }

    @Test func `if too many loads wait, others go on without the other machine`() async throws {
        let redis = try await RedisServer()
        let (first, second) = (try self.makeStore(redis), try self.makeStore(redis) { $0.waitLimit = .seconds(600) })
        let (owner, follower) = (Leases(first), Leases(second))
        let fields = (0...Leases.waitCountLimit).map { "\($0)" }
        for field in fields { #expect(try await owner.data(at: self.makePlace(field)) == nil) }
        try await withThrowingTaskGroup(of: Data?.self) { group in
            for field in fields { group.addTask { try await follower.data(at: self.makePlace(field)) } }
            #expect(try await group.next() == .some(nil))
            #expect(second.statistics().waitsOver == 1)
            await until { second.statistics().waits == Leases.waitCountLimit }
            await owner.endAll()
            try await group.waitForAll()
        }
        await follower.endAll()
        await first.redis.shutdown()
        await second.redis.shutdown()
    }

    @Test func `a follower waits on after a failed look`() async throws {
        let redis = try await RedisServer()
        let (first, second) = (try self.makeStore(redis), try self.makeStore(redis) { $0.waitLimit = .seconds(600) })
        let (owner, follower) = (Leases(first), Leases(second))
        #expect(try await owner.data(at: self.makePlace()) == nil)
        async let data = follower.data(at: self.makePlace())
        await until { second.statistics().waits == 1 }
        try redis.run("CONFIG", "SET", "maxmemory", "1")
        await until { second.statistics().failedCalls > 0 }
        try redis.run("CONFIG", "SET", "maxmemory", "0")
        _ = try await first.run("HSET", "{a}", "b", value: Data("value".utf8), key: "{a}")
        await owner.endStored("{a}", "b")
        do {
            #expect(try await data == Data("value".utf8))
        } catch {
            // On a busy machine further looks fail before Redis has memory again.
            #expect(second.statistics().circuitOpenings > 0)
        }
        await first.redis.shutdown()
        await second.redis.shutdown()
    }

    @Test func `locks that Redis grants while the circuit opens are released when it is back`() async throws {
        let redis = try await RedisServer()
        let store = try self.makeStore(redis) { configuration in
            configuration.redis.commandTimeBudget = .milliseconds(20)
            configuration.leaseLifetime = .seconds(600)
        }
        let (leases, held) = (Leases(store), self.makePlace("held"))
        await until { (try? await leases.data(at: held)) == .some(nil) }
        redis.pause()
        let fields = (0..<2 * Circuit.failureLimit).map { "\($0)" }
        await withDiscardingTaskGroup { group in
            for field in fields {
                group.addTask {
                    await #expect(throws: CacheError.self) { try await leases.data(at: self.makePlace(field)) }
                }
            }
        }
        #expect(store.isCircuitOpen())
        await leases.end(held, .free)
        redis.resume()
        // The lock of `held` goes last: Redis reads the attempts before the repeated release.
        try await until { try redis.run("DBSIZE") == "0" }
        await store.redis.shutdown()
    }

    @Test(arguments: ["stored", "nothing", "free"])
    func `a follower is woken by the end of the owner`(end: String) async throws {
        let redis = try await RedisServer()
        let (first, second) = (try self.makeStore(redis), try self.makeStore(redis) { $0.waitLimit = .seconds(600) })
        let (owner, follower) = (Leases(first), Leases(second))
        let (ownerPlace, followerPlace) = (self.makePlace(), self.makePlace())
        #expect(try await owner.data(at: ownerPlace) == nil)
        async let data = follower.data(at: followerPlace)
        await until { second.statistics().waits == 1 }
        if end == "stored" {
            _ = try await first.run("HSET", "{a}", "b", value: Data("value".utf8), key: "{a}")
            await owner.endStored("{a}", "b")
        } else {
            await owner.end(ownerPlace, end == "nothing" ? .nothing : .free)
        }
        #expect(try await data == (end == "stored" ? Data("value".utf8) : nil))
        if end != "nothing" { #expect(follower.count == (end == "free" ? 1 : 0)) }
        await first.redis.shutdown()
        await second.redis.shutdown()
    }

    @Test func `a lock stays with its load if another look of the same load is cancelled`() async throws {
        let redis = try await RedisServer()
        let store = try self.makeStore(redis)
        let (leases, place) = (Leases(store), self.makePlace())
        #expect(try await leases.data(at: place) == nil)
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try? await leases.data(at: place)
        }.value
        #expect(leases.count == 1)
        #expect(try await store.run("GET", "{a}:lock:b", key: "{a}") != .null)
        await leases.endAll()
        await store.redis.shutdown()
    }

    @Test func `loads of one process share its lock`() async throws {
        let redis = try await RedisServer()
        let store = try self.makeStore(redis)
        let leases = Leases(store)
        let places = [self.makePlace(), self.makePlace()]
        for place in places { #expect(try await leases.data(at: place) == nil) }
        await leases.end(places[0], .nothing)
        #expect(leases.count == 1)
        #expect(try await store.run("GET", "{a}:lock:b", key: "{a}") != .null)
        await leases.end(places[1], .nothing)
        #expect(leases.count == 0)
        #expect(try await store.run("GET", "{a}:lock:b", key: "{a}") == .null)
        await store.redis.shutdown()
    }
}
