// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeConcurrency
import TintypeRedis
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCluster

@Suite(.waiting, .timeLimit(.minutes(5))) struct SharedStoreTests {
    @Test func `an answer that refuses only the command closes the circuit, and is reported`() async throws {
        let refusal = Locked("-NOPERM no\r\n")
        let server = try RedisImpostor { $0.contains("GET") ? refusal.withLock { $0 } : "+OK\r\n" }
        let address = RedisAddress("127.0.0.1", port: server.port)
        var configuration = Cluster.Configuration(redis: RedisConfiguration(.standalone(address)))
        configuration.redis.commandTimeBudget = .seconds(60)
        let events = EventRecord()
        configuration.report = { events.append($0) }
        let store = SharedStore(configuration)
        let get = RedisCommand("GET", "a", key: "a", isReadOnly: true)
        for _ in 0..<Circuit.failureLimit { _ = try? await store.run(get) }
        #expect(store.isCircuitOpen() && events.events.count == 1)
        refusal.withLock { $0 = "-ERR no such command\r\n" }
        await until {
            _ = try? await store.run(get)
            return events.events.last == .circuitClosed
        }
        await store.redis.shutdown()
    }

    @Test func `a result without its bytes is no result of a revision that is called head`() async throws {
        let redis = try await RedisServer()
        let key = CacheKey("https://example.org/a").derived("small")
        var (configuration, stores) = (try Cluster.Configuration(redis), [SharedStore]())
        for revision in ["a", "a-head"] {
            configuration.revision = revision
            stores.append(SharedStore(configuration))
        }
        let tiers = stores.map { SharedTier($0, Leases($0), ChangeLog($0, "changes")) }
        try await tiers[0].store(Data([1]), metadata: EntryMetadata(mediaType: "image/jpeg"), for: key)
        #expect(try await tiers[0].metadata(for: key)?.mediaType == "image/jpeg")
        #expect(try await tiers[1].entry(for: key) == nil)
        // A head in the place of an entry is not an entry.
        let family = stores[0].family(of: key)
        let script = "redis.call('HSET', KEYS[1], ARGV[1], redis.call('HGET', KEYS[1], 'head-' .. ARGV[1]))"
        try redis.run("EVAL", script, "1", family, stores[0].field(of: key))
        #expect(try await tiers[0].entry(for: key) == nil)
        for store in stores { await store.redis.shutdown() }
    }
}
