// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeConcurrency
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCluster

/// Entries in a real store, which checks the signatures and the digests of bodies.
@Suite(
    .enabled(if: S3Origin.isInstalled, "There is no S3 store (moto); run .ci/setup test, which needs a network once."),
    .waiting,
    .timeLimit(.minutes(5))
)
struct ColdTierTests {
    private let metadata = EntryMetadata(mediaType: "image/jpeg")

    /// Returns a tier in a part of the store that no other test uses.
    private func tier(
        bucket: String = "cache",
        prefix: String = UUID().uuidString,
        secretKey: String? = "s3cr/et+key",
        revision: String = "",
        change: (inout ColdTier.Configuration) -> Void = { _ in }
    ) async throws -> ColdTier {
        let origin = try await S3Origin.shared.value
        var configuration = try ColdTier.Configuration(
            url: "s3://\(bucket)/\(prefix)?endpoint=http://127.0.0.1:\(origin.port)",
            accessKey: secretKey.map { _ in "AKTEST" },
            secretKey: secretKey,
            revision: revision
        )
        // A busy machine is slow.
        configuration.firstByteTimeout = .zero
        configuration.timeBudget = .seconds(60)
        change(&configuration)
        return ColdTier(configuration)
    }

    private func key(_ name: String = "photo") -> CacheKey { CacheKey("https://example.com/\(name).jpg") }

    @Test(arguments: [0, 1, 14, 15, 70_000, (1 << 20) - 500, 3 << 20])
    func `a stored entry is read again with its metadata`(byteCount: Int) async throws {
        let tier = try await self.tier()
        let data = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        #expect(try await tier.entry(for: self.key()) == nil)
        try await tier.store(data, metadata: self.metadata, for: self.key())
        let entry = try #require(try await tier.entry(for: self.key()))
        #expect(entry.data == data)
        #expect(entry.metadata.mediaType == "image/jpeg")
        #expect(try await tier.metadata(for: self.key())?.mediaType == "image/jpeg")
    }

    @Test(arguments: [10, 40_000])
    func `metadata is that of the entry, however long the key is`(keyLength: Int) async throws {
        let tier = try await self.tier()
        let key = self.key(String(repeating: "a", count: keyLength))
        #expect(try await tier.metadata(for: key) == nil)
        try await tier.store(Data(repeating: 7, count: 100_000), metadata: self.metadata, for: key)
        #expect(try await tier.metadata(for: key)?.mediaType == "image/jpeg")
    }

    @Test func `a prefix may have any characters`() async throws {
        let tier = try await self.tier(prefix: "a%20b+c&é<'\(UUID().uuidString)".replacing("?", with: ""))
        try await tier.store(Data([1]), metadata: self.metadata, for: self.key())
        #expect(try await tier.entry(for: self.key())?.data == Data([1]))
        #expect(try await tier.removeFamily(of: self.key()))
        #expect(try await tier.entry(for: self.key()) == nil)
    }

    @Test func `a second store replaces the entry`() async throws {
        let tier = try await self.tier()
        for value in UInt8(1)...3 {
            try await tier.store(Data([value]), metadata: self.metadata, for: self.key())
            #expect(try await tier.entry(for: self.key())?.data == Data([value]))
        }
    }

    @Test func `two tiers on one prefix have the same entries`() async throws {
        let prefix = UUID().uuidString
        let (first, second) = (try await self.tier(prefix: prefix), try await self.tier(prefix: prefix))
        try await first.store(Data([1]), metadata: self.metadata, for: self.key())
        #expect(try await second.entry(for: self.key())?.data == Data([1]))
        #expect(try await second.remove(self.key()))
        #expect(try await first.entry(for: self.key()) == nil)
    }

    @Test func `removing an entry tells whether there was one`() async throws {
        let tier = try await self.tier()
        #expect(try await !tier.remove(self.key()))
        try await tier.store(Data([1]), metadata: self.metadata, for: self.key())
        #expect(try await tier.remove(self.key()))
        #expect(try await !tier.remove(self.key()))
        #expect(try await tier.entry(for: self.key()) == nil)
    }

    @Test func `removing a family removes all its entries, page by page, and no others`() async throws {
        let tier = try await self.tier { $0.pageSize = 2 }
        let other = self.key("other")
        let family = [self.key()] + (0..<4).map { self.key().derived("\($0)") }
        #expect(try await !tier.removeFamily(of: self.key()))
        for key in family + [other] { try await tier.store(Data([1]), metadata: self.metadata, for: key) }
        #expect(try await tier.removeFamily(of: self.key().derived("3")))
        for key in family { #expect(try await tier.entry(for: key) == nil) }
        #expect(try await tier.entry(for: other) != nil)
        #expect(try await !tier.removeFamily(of: self.key()))
    }

    @Test func `revisions have their own derived entries, and share originals and removals`() async throws {
        let prefix = UUID().uuidString
        let old = try await self.tier(prefix: prefix, revision: "1")
        let new = try await self.tier(prefix: prefix, revision: "2")
        let thumbnail = self.key().derived("400x300")
        for key in [self.key(), thumbnail] { try await old.store(Data([1]), metadata: self.metadata, for: key) }
        #expect(try await new.entry(for: self.key()) != nil)
        #expect(try await new.entry(for: thumbnail) == nil)
        try await new.store(Data([2]), metadata: self.metadata, for: thumbnail)
        #expect(try await old.entry(for: thumbnail)?.data == Data([1]))
        #expect(try await new.removeFamily(of: self.key()))
        #expect(try await old.entry(for: thumbnail) == nil)
    }

    @Test func `an object of another key, a damaged one and a too large one are misses`() async throws {
        let prefix = UUID().uuidString
        let tier = try await self.tier(prefix: prefix)
        try await tier.store(Data(repeating: 1, count: 2 << 20), metadata: self.metadata, for: self.key())
        let small = try await self.tier(prefix: prefix) { $0.maximumEntrySize = 1 }
        #expect(try await small.entry(for: self.key()) == nil)
        let origin = try await S3Origin.shared.value
        let endpoint = try S3Endpoint(url: try #require(URL(string: "http://127.0.0.1:\(origin.port)")))
        let name = ObjectNames(prefix: prefix, revision: "").object(of: self.key())
        let downloads = DownloadActor()
        let stored = ByteEntry(data: Data([1]), metadata: self.metadata)
        var damaged = stored.encoded(for: self.key())
        damaged[damaged.count - 1] ^= 1
        for object in [damaged, stored.encoded(for: self.key("other")), Data("text".utf8), Data()] {
            var request = DownloadRequest(
                url: try endpoint.url(bucket: "cache", key: Array(name.utf8)),
                method: .put(object)
            )
            request.credentials = .awsSignature(
                AWSSigningKey(accessKey: "AKTEST", secretKey: "s3cr/et+key", region: "us-east-1", service: "s3")
            )
            #expect(try await downloads.response(for: request).status == 200)
            #expect(try await tier.entry(for: self.key()) == nil)
        }
    }

    /// Returns a tier whose store cannot be reached and whose clock stands still, so that a circuit stays open.
    private func unreachable(_ events: EventRecord = EventRecord()) throws -> ColdTier {
        var configuration = try ColdTier.Configuration(url: "s3://cache?endpoint=http://127.0.0.1:1")
        configuration.retryPolicy = .never
        configuration.now = { [start = ContinuousClock.now] in start }
        configuration.report = { events.append($0) }
        return ColdTier(configuration)
    }

    private func isRefused(_ call: () async throws -> Void) async -> Bool {
        let error = await #expect(throws: CacheError.self) { try await call() }
        return error?.message.contains("is not asked for a while") == true
    }

    @Test func `after three failed look-ups, a store that cannot be reached gets no more requests`() async throws {
        let tier = try self.unreachable()
        for _ in 0..<3 { #expect(await !self.isRefused { _ = try await tier.entry(for: self.key()) }) }
        #expect(await self.isRefused { _ = try await tier.entry(for: self.key()) })
        #expect(await self.isRefused { try await tier.store(Data([1]), metadata: self.metadata, for: self.key()) })
        #expect(await self.isRefused { _ = try await tier.remove(self.key()) })
        #expect(await self.isRefused { _ = try await tier.removeFamily(of: self.key()) })
    }

    @Test
    func `after three failed stores, a store that cannot be reached gets no more stores, but is asked for entries`()
        async throws
    {
        let events = EventRecord()
        let tier = try self.unreachable(events)
        let store = { try await tier.store(Data([1]), metadata: self.metadata, for: self.key()) }
        for _ in 0..<3 { #expect(await !self.isRefused(store)) }
        #expect(await self.isRefused(store))
        #expect(await !self.isRefused { _ = try await tier.entry(for: self.key()) })
        // Removals have a circuit of their own.
        #expect(await !self.isRefused { _ = try await tier.removeFamily(of: self.key()) })
        #expect(await self.isRefused(store))
        let reports = events.events.filter { if case .circuitOpened = $0 { true } else { false } }
        #expect(reports.count == 1 && events.events.count == 1)
    }

    @Test func `a store that refuses a key is asked again each time, with the advice each time`() async throws {
        let events = EventRecord()
        let tier = try await self.tier(secretKey: "wr0ngsecret") { $0.report = { events.append($0) } }
        for _ in 0..<5 {
            let error = await #expect(throws: CacheError.self) { _ = try await tier.entry(for: self.key()) }
            #expect(error?.message.contains("refused the key") == true)
        }
        // It is reported once.
        guard case .unsuitableSetting(let advice)? = events.events.first else { throw TestSupportError("no report") }
        #expect(events.events.count == 1 && advice.contains("refused the key"))
    }

    @Test func `an entry over the limit is neither accepted nor stored`() async throws {
        let tier = try await self.tier { $0.maximumEntrySize = 10 }
        #expect(tier.accepts(self.key(), byteCount: 10))
        #expect(tier.accepts(self.key().derived("a"), byteCount: 10))
        #expect(!tier.accepts(self.key(), byteCount: 11))
        let error = try await #require(throws: CacheError.self) {
            try await tier.store(Data(repeating: 1, count: 11), metadata: self.metadata, for: self.key())
        }
        #expect(error.code == .entryTooLarge)
    }

    @Test func `a wrong secret, a missing key and a missing bucket are errors with advice`() async throws {
        let wrong = try await self.tier(secretKey: "wr0ngsecret")
        let unsigned = try await self.tier(secretKey: nil)
        let nowhere = try await self.tier(bucket: "nowhere")
        for (tier, advice) in [(wrong, "permissions"), (unsigned, "permissions"), (nowhere, "create it")] {
            let error = try await #require(throws: CacheError.self) {
                try await tier.store(Data([1]), metadata: self.metadata, for: self.key())
            }
            #expect(error.code == .tierFailed)
            #expect(error.message.contains(advice))
            #expect(!"\(error)".contains("wr0ngsecret"))
            await #expect(throws: CacheError.self) { try await tier.removeFamily(of: self.key()) }
        }
        await #expect(throws: CacheError.self) { try await wrong.entry(for: self.key()) }
    }

    @Test func `the tier cannot remove all entries`() async throws {
        let tier = try await self.tier()
        let error = try await #require(throws: CacheError.self) { try await tier.removeAll() }
        #expect(error.message.contains("s3"))
    }

    @Test func `a cache stores behind its callers, and fills the nearer tier from the cold one`() async throws {
        let prefix = UUID().uuidString
        let first = CacheActor(tiers: [try await self.tier(prefix: prefix)], timeBudget: .seconds(60))
        await first.store(nil, data: Data([1]), metadata: self.metadata, for: self.key())
        await first.waitForPendingStores()
        let folder = try TemporaryDirectory(prefix: "tintype-cold")
        let disk = DiskCache(DiskCache.Configuration(directory: URL(filePath: folder.path)))
        let second = CacheActor(tiers: [disk, try await self.tier(prefix: prefix)], timeBudget: .seconds(60))
        let entry = try #require(try await second.entry(for: self.key()))
        #expect(entry.tier == "s3")
        await second.waitForPendingStores()
        #expect(try await second.entry(for: self.key())?.tier != "s3")
    }
}

/// Stores that fail.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct ColdTierFailureTests {
    private let key = CacheKey("https://example.com/photo.jpg")

    private func tier(
        _ origin: FaultyOrigin,
        change: (inout ColdTier.Configuration) -> Void = { _ in }
    ) throws -> ColdTier {
        var configuration = try ColdTier.Configuration(
            url: "s3://photos?endpoint=\(origin.url(""))",
            accessKey: "AKTEST",
            secretKey: "s3cret"
        )
        configuration.retryPolicy.initialDelay = .zero
        // A busy machine is slow.
        configuration.firstByteTimeout = .zero
        configuration.timeBudget = .seconds(60)
        change(&configuration)
        return ColdTier(configuration)
    }

    private var path: String { "/photos/\(self.key.digest)/\(self.key.digest)" }

    @Test func `an entry is sent again while the store is briefly overloaded`() async throws {
        let origin = try FaultyOrigin([self.path: .empty])
        origin.script(self.path, sequence: [.body([], status: 503), .body([], status: 503)])
        try await self.tier(origin).store(Data([1]), metadata: EntryMetadata(), for: self.key)
        let heads = origin.requestHeads(for: self.path)
        #expect(heads.count == 3)
        #expect(heads.allSatisfy { $0.hasPrefix("PUT /") && $0.contains("Credential=AKTEST/") })
    }

    @Test func `a store that stays overloaded is an error with advice, and gets each look-up only once`() async throws {
        let origin = try FaultyOrigin([self.path: .body([], status: 503, headers: [("Retry-After", "1")])])
        let error = try await #require(throws: CacheError.self) { try await self.tier(origin).entry(for: self.key) }
        #expect(error.code == .tierFailed)
        #expect(error.message.contains("overloaded"))
        #expect(origin.requestCount(for: self.path) == 1)
    }

    @Test(
        arguments: [.silence, .stall(declaredLength: 1_000), .lying(declaredLength: 1_000, body: [1])]
            as [FaultyResponse]
    )
    func `look-ups of a store that is silent or breaks off end long before the time budget, and open the circuit`(
        _ response: FaultyResponse
    ) async throws {
        let origin = try FaultyOrigin([self.path: response])
        let tier = try self.tier(origin) {
            $0.firstByteTimeout = .milliseconds(300)
            $0.timeBudget = .seconds(20)
            $0.now = { [start = ContinuousClock.now] in start }
        }
        for _ in 0..<3 { await #expect(throws: CacheError.self) { try await tier.entry(for: self.key) } }
        let error = try await #require(throws: CacheError.self) { try await tier.entry(for: self.key) }
        #expect(error.message.contains("is not asked for a while"))
        await origin.waitForRequests(3, for: self.path)
        #expect(origin.requestCount(for: self.path) == 3)
    }

    @Test func `metadata needs only the start of an object, and a store that ignores ranges gives it, too`()
        async throws
    {
        let object = ByteEntry(
            data: Data(repeating: 7, count: 100_000),
            metadata: EntryMetadata(mediaType: "image/png")
        )
        let encoded = Array(object.encoded(for: self.key))
        let range = ("Content-Range", "bytes 0-16383/\(encoded.count)")
        let origin = try FaultyOrigin([:])
        origin.script(
            self.path,
            sequence: [.body(Array(encoded.prefix(16_384)), status: 206, headers: [range]), .body(encoded)]
        )
        let tier = try self.tier(origin)
        for _ in 0..<2 { #expect(try await tier.metadata(for: self.key)?.mediaType == "image/png") }
        let heads = origin.requestHeads(for: self.path)
        #expect(heads.count == 2 && heads.allSatisfy { $0.contains("Range: bytes=0-16383\r\n") })
    }

    @Test func `no request follows a redirect`() async throws {
        let origin = try FaultyOrigin(["/other": .body([1])])
        origin.script(self.path, .redirect(to: "/other", status: 307))
        let tier = try self.tier(origin)
        for call in [
            { _ = try await tier.entry(for: self.key) },
            { try await tier.store(Data([1]), metadata: EntryMetadata(), for: self.key) },
        ] {
            let error = try await #require(throws: CacheError.self) { try await call() }
            #expect(error.message.contains("region"))
        }
        await #expect(throws: CacheError.self) { try await tier.remove(self.key) }
        #expect(origin.requestCount(for: "/other") == 0)
    }

    @Test func `the end of an outage of look-ups is reported, and the next outage again`() async throws {
        let origin = try FaultyOrigin([self.path: .body([], status: 500)])
        let events = EventRecord()
        let clock = Locked(ContinuousClock.now)
        let tier = try self.tier(origin) {
            $0.retryPolicy = .never
            $0.report = { events.append($0) }
            $0.now = { clock.withLock { $0 } }
        }
        for outage in 1...2 {
            origin.script(self.path, .body([], status: 500))
            for _ in 0..<4 { await #expect(throws: CacheError.self) { try await tier.entry(for: self.key) } }
            await #expect(throws: CacheError.self) {
                try await tier.store(Data([1]), metadata: EntryMetadata(), for: self.key)
            }
            #expect(events.events.count == 2 * outage - 1)
            origin.script(self.path, .body([], status: 404))
            clock.withLock { $0 += .seconds(5) }
            #expect(try await tier.entry(for: self.key) == nil)
            #expect(events.events.count == 2 * outage)
            guard case .circuitClosed? = events.events.last else { throw TestSupportError("no end of the outage") }
        }
    }

    @Test func `an invalid object listing is an error`() async throws {
        let origin = try FaultyOrigin(["/photos/": .body(Array("<html></html>".utf8))])
        await #expect(throws: CacheError.self) { try await self.tier(origin).removeFamily(of: self.key) }
    }
}
