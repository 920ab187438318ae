// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskFailureTests {
    private let key = CacheKey("a")

    private func storeError(_ cache: DiskCache, _ data: Data = makeData(10)) async -> CacheError? {
        await #expect(throws: CacheError.self) { try await cache.store(data, metadata: .init(), for: self.key) }
    }

    @Test(.enabled(if: TemporaryFileSystem.isAvailable, "mounting a small file system needs root"))
    func `full disk is said and old entries stay readable`() async throws {
        let disk = try TemporaryFileSystem(byteCount: 256 << 10)
        let cache = DiskCache(.init(directory: disk.url))
        try await cache.store(makeData(50_000), metadata: .sample, for: self.key)
        try await cache.store(makeData(50_000, seed: 2), metadata: .sample, for: CacheKey("b"))
        let files = disk.files()
        let error = try #require(await self.storeError(cache, makeData(400_000)))
        #expect(error.code == .diskFull)
        #expect(error.message.contains(disk.path))
        #expect(error.underlyingError == SystemCallError(call: "write", number: ENOSPC))
        #expect(disk.files() == files)
        #expect(try await cache.entry(for: self.key)?.data == makeData(50_000))
        #expect(try await cache.entry(for: CacheKey("b"))?.data == makeData(50_000, seed: 2))
        let statistics = await cache.statistics()
        #expect(statistics.lastStoreError?.code == .diskFull)
        #expect(statistics.storeErrors == 1)
        // The failed store has released its reserved space.
        try await cache.store(makeData(60_000), metadata: .sample, for: CacheKey("c"))
        await cache.shutdown()
    }

    @Test(.enabled(if: TemporaryFileSystem.isAvailable, "mounting a small file system needs root"))
    func `without inodes the oldest entries go for new ones`() async throws {
        let disk = try TemporaryFileSystem(byteCount: 8 << 20, inodeCount: 120)
        let clock = TestClock()
        let cache = DiskCache(.init(directory: disk.url, laneCount: 1, now: { clock.now }))
        let keys = (0..<300).map { CacheKey("\($0)") }
        for (index, key) in keys.enumerated() {
            clock.advance(by: 1)
            try await cache.store(makeData(100, seed: UInt64(index)), metadata: .sample, for: key)
            #expect(try await cache.entry(for: key)?.data == makeData(100, seed: UInt64(index)))
        }
        let statistics = await cache.statistics()
        #expect(statistics.storeErrors == 0)
        #expect(statistics.evictions >= 200)
        #expect(statistics.entryCount > 20)
        #expect(try await cache.entry(for: keys[0]) == nil)
        await cache.shutdown()
    }

    @Test(.enabled(if: TemporaryFileSystem.isAvailable, "mounting a small file system needs root"))
    func `without inodes and entries a store says so`() async throws {
        let disk = try TemporaryFileSystem(byteCount: 8 << 20, inodeCount: 30)
        let cache = DiskCache(.init(directory: disk.url, laneCount: 1))
        try await cache.store(makeData(100), metadata: .sample, for: self.key)
        try await cache.remove(self.key)
        var count = 0
        while FileManager.default.createFile(atPath: "\(disk.path)/other-\(count)", contents: nil) { count += 1 }
        let error = try #require(await self.storeError(cache))
        #expect(error.code == .diskFull)
        #expect(error.message.contains("no room for another file"))
        await cache.shutdown()
    }

    @Test(.enabled(if: TemporaryFileSystem.isAvailable, "mounting a small file system needs root"))
    func `read only disk is said and still serves its entries`() async throws {
        let disk = try TemporaryFileSystem(byteCount: 256 << 10)
        let clock = TestClock()
        let first = DiskCache(.init(directory: disk.url, now: { clock.now }))
        try await first.store(makeData(10), metadata: .sample, for: self.key)
        await first.shutdown()
        try disk.makeReadOnly()
        clock.advance(by: 3_600)
        let cache = DiskCache(.init(directory: disk.url, now: { clock.now }))
        #expect(try await cache.entry(for: self.key)?.data == makeData(10))
        let error = try #require(await self.storeError(cache))
        #expect(error.code == .cacheNotWritable)
        #expect(error.underlyingError?.number == EROFS)
        let removal = await #expect(throws: CacheError.self) { try await cache.remove(self.key) }
        #expect(removal?.code == .cacheNotWritable)
        // An expired entry is a miss even if the cache cannot remove it.
        clock.advance(by: 30 * 24 * 3_600)
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(await cache.prune() == PruneResult())
        await cache.shutdown()
    }

    @Test func `folder under a file is not writable and has no entries`() async throws {
        let cache = DiskCache(.init(directory: URL(filePath: "/dev/null/x")))
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(await !cache.contains(self.key))
        let error = try #require(await self.storeError(cache))
        #expect(error.code == .cacheNotWritable)
        #expect(error.message.contains("/dev/null/x"))
        #expect(error.underlyingError?.number == ENOTDIR)
        #expect(try await !cache.remove(self.key))
        try await cache.removeAll()
        #expect(await cache.prune() == PruneResult())
        #expect(await cache.statistics().entryCount == 0)
    }

    @Test(arguments: [false, true])
    func `a store that fails leaves no entry of another body, and one of the same body`(
        isWaiting: Bool
    ) async throws {
        let folder = try ScratchFolder()
        let cache = DiskCache(.init(directory: folder.url, sizeLimit: 2_000))
        func store(_ byteCount: Int, body: UInt64?) async {
            let metadata = EntryMetadata(bodyDigest: body)
            if isWaiting {
                try? await cache.store(makeData(byteCount), metadata: metadata, for: self.key)
            } else {
                cache.enqueueStore(makeData(byteCount), metadata: metadata, for: self.key)
                await cache.waitForPendingStores()
            }
        }
        await store(10, body: 1)
        for body in [nil, 1] as [UInt64?] {
            await store(3_000, body: body)
            #expect(try await cache.entry(for: self.key)?.data == makeData(10))
        }
        await store(3_000, body: 2)
        #expect(try await cache.entry(for: self.key) == nil)
        #expect(folder.entryFiles() == [])
    }

    @Test(.enabled(if: geteuid() != 0, "root may write anywhere"))
    func `folder without permission is not writable`() async throws {
        let folder = try ScratchFolder()
        #expect(chmod(folder.path, 0o500) == 0)
        let error = await self.storeError(DiskCache(.init(directory: folder.url)))
        #expect(error?.code == .cacheNotWritable)
        #expect(chmod(folder.path, 0o700) == 0)
    }

    @Test func `read that the system refuses is an error`() async throws {
        let folder = try ScratchFolder()
        let url = folder.url.appending(path: String(repeating: "n", count: 300))
        let cache = DiskCache(.init(directory: url))
        let error = await #expect(throws: CacheError.self) { try await cache.entry(for: self.key) }
        #expect(error?.code == .unexpected)
        #expect(error?.underlyingError?.number == ENAMETOOLONG)
        #expect(await self.storeError(cache)?.code == .cacheNotWritable)
    }

    @Test func `no descriptor left is said`() async {
        await #expect(processExitsWith: .success) {
            let folder = try ScratchFolder()
            let cache = DiskCache(.init(directory: folder.url))
            let key = CacheKey("a")
            try await cache.store(makeData(10), metadata: .init(), for: key)
            _ = await cache.statistics()
            let (read, store) = await ProcessLimit.withoutDescriptors {
                let read = await #expect(throws: CacheError.self) { try await cache.entry(for: key) }
                let store = await #expect(throws: CacheError.self) {
                    try await cache.store(makeData(20), metadata: .init(), for: key)
                }
                return (read, store)
            }
            #expect(read?.code == .tooManyOpenFiles)
            #expect(store?.code == .tooManyOpenFiles)
            #expect(try await cache.entry(for: key)?.data == makeData(10))
        }
    }

    @Test func `error of a background store reaches the handler and the statistics`() async throws {
        let errors = AsyncStream<CacheError>.makeStream()
        let cache = DiskCache(
            .init(
                directory: URL(filePath: "/dev/null/x"),
                storeErrorHandler: { errors.continuation.yield($0) }
            )
        )
        cache.enqueueStore(makeData(10), metadata: .init(), for: self.key)
        await cache.waitForPendingStores()
        var iterator = errors.stream.makeAsyncIterator()
        let error = await iterator.next()
        #expect(error?.code == .cacheNotWritable)
        #expect(await cache.statistics().lastStoreError?.code == .cacheNotWritable)
    }

    @Test(arguments: [
        (ENOSPC, CacheError.Code.diskFull), (EDQUOT, .diskFull), (EACCES, .cacheNotWritable),
        (EPERM, .cacheNotWritable),
        (EROFS, .cacheNotWritable), (ENOTDIR, .cacheNotWritable), (ELOOP, .cacheNotWritable),
        (EMFILE, .tooManyOpenFiles),
        (ENFILE, .tooManyOpenFiles), (ENOMEM, .outOfMemory), (EIO, .diskFault), (EXDEV, .unexpected),
    ])
    func `each failure of a store has its code and names the folder`(number: Int32, code: CacheError.Code) {
        let error = CacheError.writing(SystemCallError(call: "open", number: number), in: "/some/folder")
        #expect(error.code == code)
        #expect(error.message.contains("/some/folder"))
        #expect(error.message.hasSuffix("."))
        #expect(error.description.contains("errno \(number)"))
    }

    @Test(arguments: [(EACCES, CacheError.Code.notReadable), (EIO, .diskFault), (EMFILE, .tooManyOpenFiles)])
    func `each failure of a read has its code`(number: Int32, code: CacheError.Code) {
        #expect(CacheError.reading(SystemCallError(call: "open", number: number), in: "/some/folder").code == code)
    }
}
