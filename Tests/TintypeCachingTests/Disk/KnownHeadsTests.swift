// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Metadata that a cache remembers and looks up without waiting.
@Suite(.waiting, .timeLimit(.minutes(5))) struct KnownHeadsTests {
    private let folder: ScratchFolder
    private let clock = TestClock()
    private let key = CacheKey("https://example.org/a.jpg")

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache(maximumAge: Duration? = nil) -> DiskCache {
        let clock = self.clock
        return DiskCache(.init(directory: self.folder.url, maximumAge: maximumAge, now: { clock.now }))
    }

    private func store(_ body: UInt64, in cache: DiskCache) async throws {
        try await cache.store(makeData(100, seed: body), metadata: EntryMetadata(bodyDigest: body), for: self.key)
    }

    private func isKnown(to cache: DiskCache) -> Bool {
        guard case .found(let record, _, _)? = cache.store.folders.opened?.region.find(EntryName(self.key)) else {
            return false
        }
        return cache.store.reader.heads.head(of: self.key, record) != nil
    }

    @Test func `a head is remembered once the second of its store is over`() async throws {
        let cache = self.makeCache()
        #expect(cache.readyMetadata(for: self.key) == nil)
        try await self.store(1, in: cache)
        #expect(try #require(cache.readyMetadata(for: self.key)).bodyDigest == 1)
        #expect(!self.isKnown(to: cache))
        self.clock.advance(by: 3)
        for _ in 0..<2 { #expect(cache.readyMetadata(for: self.key)?.bodyDigest == 1) }
        #expect(self.isKnown(to: cache))
        #expect(await cache.statistics().hits == 0)
    }

    @Test(arguments: [true, false]) func `a store by any cache of the folder is seen`(isOwn: Bool) async throws {
        let cache = self.makeCache()
        let other = isOwn ? cache : self.makeCache()
        try await self.store(1, in: cache)
        for body in 2..<6 as Range<UInt64> {
            // At first, both entries are stored in the same second.
            try await self.store(body, in: other)
            #expect(cache.readyMetadata(for: self.key)?.bodyDigest == body)
            self.clock.advance(by: 3)
            #expect(cache.readyMetadata(for: self.key)?.bodyDigest == body)
            #expect(self.isKnown(to: cache))
            try await self.store(body + 10, in: other)
            #expect(cache.readyMetadata(for: self.key)?.bodyDigest == body + 10)
        }
    }

    @Test(arguments: [true, false]) func `a removal by any cache of the folder is seen`(isOwn: Bool) async throws {
        let cache = self.makeCache()
        let other = isOwn ? cache : self.makeCache()
        try await self.store(1, in: cache)
        self.clock.advance(by: 3)
        #expect(cache.readyMetadata(for: self.key) != nil)
        try await other.remove(self.key)
        #expect(cache.readyMetadata(for: self.key) == nil)
    }

    @Test func `a remembered head expires`() async throws {
        let cache = self.makeCache(maximumAge: .seconds(100))
        try await self.store(1, in: cache)
        self.clock.advance(by: 3)
        #expect(cache.readyMetadata(for: self.key) != nil)
        self.clock.advance(by: 200)
        #expect(cache.readyMetadata(for: self.key) == nil)
    }

    @Test func `a head that is read while its file is moved into place is not remembered`() async throws {
        let cache = self.makeCache()
        try await self.store(1, in: cache)
        self.clock.advance(by: 3)
        let folder = try #require(cache.store.folders.opened)
        let region = folder.region
        region[.intentHigh] = EntryName(self.key).high
        #expect(cache.readyMetadata(for: self.key)?.bodyDigest == 1)
        #expect(!self.isKnown(to: cache))
        region[.intentHigh] = 0
        #expect(cache.readyMetadata(for: self.key)?.bodyDigest == 1)
        #expect(self.isKnown(to: cache))
    }

    @Test func `as many heads are remembered as the limit permits`() async throws {
        let heads = KnownHeads()
        let header = try #require(try await self.makeHeader())
        let keys = (0..<1_025).map { CacheKey("\($0)") }
        let records = keys.map {
            CatalogueRecord(name: EntryName($0), byteCount: 1, usedAt: 1, storedAt: 1, expiresAt: .infinity)
        }
        for (key, record) in zip(keys, records) { heads.remember(header, EntryMetadata(), of: key, record) }
        #expect(heads.head(of: keys[0], records[0]) == nil)
        #expect(heads.head(of: keys[1_024], records[1_024]) != nil)
        heads.forget(records[1_024].name)
        #expect(heads.head(of: keys[1_024], records[1_024]) == nil)
    }

    // MARK: Renewals

    /// Returns the metadata of a response with a lifetime of a second, confirmed now.
    private func confirmed(_ fields: HeaderFields = ["Cache-Control": "max-age=1"], body: UInt64 = 1) -> EntryMetadata {
        let record = ResponseRecord(
            status: 200,
            headers: fields,
            requestHeaders: [:],
            requestDate: self.clock.now,
            responseDate: self.clock.now,
            isShared: false
        )
        return EntryMetadata(responseDate: self.clock.now, response: record, bodyDigest: body)
    }

    /// Stores an entry in the background, and returns the number of its file.
    private func enqueue(_ metadata: EntryMetadata, in cache: DiskCache) async throws -> UInt64 {
        cache.enqueueStore(makeData(100, seed: metadata.bodyDigest ?? 0), metadata: metadata, for: self.key)
        await cache.waitForPendingStores()
        let path = try #require(try await cache.file(for: self.key)).path
        var status = stat()
        #expect(stat(path, &status) == 0)
        return UInt64(status.st_ino)
    }

    @Test func `a confirmed entry is not written again for a minute, but has the new date`()
        async throws
    {
        let (cache, other) = (self.makeCache(), self.makeCache())
        let first = self.confirmed()
        let file = try await self.enqueue(first, in: cache)
        for _ in 0..<5 {
            self.clock.advance(by: 10)
            let renewed = self.confirmed()
            #expect(try await self.enqueue(renewed, in: cache) == file)
            #expect(cache.readyMetadata(for: self.key) == renewed)
            #expect(cache.readyEntry(for: self.key)?.metadata == renewed)
            #expect(try await cache.metadata(for: self.key) == renewed)
            #expect(try await cache.entry(for: self.key)?.metadata == renewed)
            #expect(try await cache.file(for: self.key)?.metadata == renewed)
            // Another process asks the origin itself.
            #expect(try await other.metadata(for: self.key) == first)
        }
        self.clock.advance(by: 10)
        let last = self.confirmed()
        #expect(try await self.enqueue(last, in: cache) != file)
        #expect(try await other.metadata(for: self.key) == last)
    }

    enum News: CaseIterable {
        case body, programValue, end, noResponse
    }

    @Test(arguments: News.allCases) func `an entry with news is written`(news: News) async throws {
        let cache = self.makeCache()
        let file = try await self.enqueue(self.confirmed(), in: cache)
        self.clock.advance(by: 10)
        var metadata = self.confirmed()
        switch news {
        case .body: metadata.bodyDigest = 2
        case .programValue: metadata.extra["a"] = "b"
        case .end: metadata.expiry = Date(timeIntervalSince1970: 2_000_000_000)
        case .noResponse: metadata.response = nil
        }
        #expect(try await self.enqueue(metadata, in: cache) != file)
        #expect(try await self.makeCache().metadata(for: self.key) == metadata)
    }

    @Test(
        arguments: [["Cache-Control": "max-age=60"], ["Cache-Control": "max-age=1", "X-New": "1"]] as [HeaderFields]
    )
    func `a response with other fields is written`(fields: HeaderFields) async throws {
        let cache = self.makeCache()
        let file = try await self.enqueue(self.confirmed(), in: cache)
        self.clock.advance(by: 10)
        #expect(try await self.enqueue(self.confirmed(fields), in: cache) != file)
    }

    @Test func `a caller that waits for its store has it on disk`() async throws {
        let cache = self.makeCache()
        _ = try await self.enqueue(self.confirmed(), in: cache)
        self.clock.advance(by: 10)
        let metadata = self.confirmed()
        try await cache.store(makeData(100, seed: 1), metadata: metadata, for: self.key)
        #expect(try await self.makeCache().metadata(for: self.key) == metadata)
    }

    @Test func `a renewal does not outlive its entry`() async throws {
        let cache = self.makeCache()
        let first = self.confirmed()
        _ = try await self.enqueue(first, in: cache)
        self.clock.advance(by: 10)
        _ = try await self.enqueue(self.confirmed(), in: cache)
        try await cache.remove(self.key)
        #expect(try await cache.metadata(for: self.key) == nil)
        try await cache.store(makeData(100, seed: 1), metadata: first, for: self.key)
        #expect(try await cache.metadata(for: self.key) == first)
    }

    private func makeHeader() async throws -> EntryHeader? {
        let cache = self.makeCache()
        try await self.store(1, in: cache)
        let folder = try #require(cache.store.folders.opened)
        return try EntryHeader.read(EntryName(self.key), in: folder).0
    }
}
