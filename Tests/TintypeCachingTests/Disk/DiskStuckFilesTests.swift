// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCaching

/// Checks that work on a folder with missing or undeletable files ends and reports its failures.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DiskStuckFilesTests {
    private let folder: ScratchFolder
    private let limit = 100_000

    init() throws {
        self.folder = try ScratchFolder()
    }

    private func makeCache(sizeLimit: Int) -> DiskCache {
        var configuration = DiskCache.Configuration(directory: self.folder.url, sizeLimit: sizeLimit)
        configuration.sleep = { _ in }
        return DiskCache(configuration)
    }

    @Test func `thirty thousand entries without files are no matter of the stack`() async throws {
        let count = 30_000
        let limit = 15_000_000
        do {
            let folder = try openFolder(self.folder.path)
            try folder.withCatalogue { catalogue, _ throws(SystemCallError) in
                for number in 0..<count {
                    let name = EntryName(high: UInt64(number + 1) &* 0x9E37_79B9_7F4A_7C15, low: 1)
                    try catalogue.put(
                        CatalogueRecord(
                            name: name,
                            byteCount: 1_000,
                            usedAt: Double(number),
                            storedAt: 1,
                            expiresAt: .infinity
                        )
                    )
                }
                catalogue.region.flags = .isComplete
            }
        }
        // The opening trims the cache as well, on its own thread.
        let cache = DiskCache(.init(directory: self.folder.url, maximumAge: nil, sizeLimit: limit))
        try await cache.store(Data(repeating: 1, count: 1_000), metadata: .init(), for: CacheKey("a"))
        await cache.waitForHousekeeping()
        #expect(try await cache.entry(for: CacheKey("a")) != nil)
        let statistics = await cache.statistics()
        #expect(statistics.byteCount + statistics.overheadByteCount <= limit)
        #expect(statistics.evictions == 0)
        await cache.shutdown()
    }

    /// Leaves a cleared entry that cannot be deleted, and returns its file.
    private func leaveStuck(byteCount: Int) async throws -> StuckFile {
        let first = self.makeCache(sizeLimit: 1 << 30)
        for number in 0..<20 {
            try await first.store(
                Data(repeating: 1, count: number == 0 ? byteCount : 100),
                metadata: .init(),
                for: CacheKey("\(number)")
            )
        }
        await first.waitForHousekeeping()
        let path = EntryName(CacheKey("0")).path
        let stuck = try StuckFile(self.folder.path + "/" + path)
        first.store.folders.closing.set()
        try await first.removeAll()
        await first.shutdown()
        let place = try FileManager.default.contentsOfDirectory(atPath: self.folder.path + "/discarded")
        stuck.path = "\(self.folder.path)/discarded/\(try #require(place.first))/\(path)"
        return stuck
    }

    @Test(.enabled(if: StuckFile.isPossible, "the file system or the user cannot make files that cannot be deleted"))
    func `cleared file that cannot be deleted ends no store`() async throws {
        let stuck = try await self.leaveStuck(byteCount: 20_000)
        let cache = self.makeCache(sizeLimit: self.limit)
        for number in 0..<100 {
            try await cache.store(Data(repeating: 1, count: 2_000), metadata: .init(), for: CacheKey("new \(number)"))
        }
        await cache.waitForHousekeeping()
        #expect(access(stuck.path, F_OK) == 0)
        #expect(self.folder.wholeByteCount() <= self.limit)
        let statistics = await cache.statistics()
        #expect((30...40).contains(statistics.entryCount))
        #expect(statistics.byteCount + statistics.overheadByteCount <= self.limit)
        #expect(statistics.overheadByteCount >= 20_000)
        #expect(statistics.removalErrors > 0)
        // The cache does not retry the removal at each store.
        #expect(statistics.removalErrors < 20)
        #expect(statistics.lastRemovalError?.code == .notRemovable)
        #expect(statistics.lastRemovalError?.message.contains("/discarded/") == true)
        stuck.release()
        _ = await cache.prune()
        #expect(access(stuck.path, F_OK) != 0)
        #expect(await cache.statistics().overheadByteCount < 10_000)
        await cache.shutdown()
    }

    @Test(.enabled(if: StuckFile.isPossible, "the file system or the user cannot make files that cannot be deleted"))
    func `where what cannot be deleted leaves no room nothing else is evicted`() async throws {
        let stuck = try await self.leaveStuck(byteCount: 92_000)
        let cache = self.makeCache(sizeLimit: self.limit)
        try await cache.store(Data(repeating: 1, count: 1_000), metadata: .init(), for: CacheKey("small"))
        let error = await #expect(throws: CacheError.self) {
            try await cache.store(Data(repeating: 1, count: 10_000), metadata: .init(), for: CacheKey("large"))
        }
        #expect(error?.code == .diskFull)
        #expect(try await cache.entry(for: CacheKey("small")) != nil)
        stuck.release()
        await cache.shutdown()
    }

    @Test(.enabled(if: StuckFile.isPossible, "the file system or the user cannot make files that cannot be deleted"))
    func `entry that cannot be removed is passed over`() async throws {
        let clock = TestClock()
        let cache = DiskCache(.init(directory: self.folder.url, sizeLimit: self.limit, now: { clock.now }))
        try await cache.store(Data(repeating: 1, count: 1_000), metadata: .init(), for: CacheKey("stuck"))
        let stuck = try StuckFile("\(self.folder.path)/\(EntryName(CacheKey("stuck")).path)")
        for number in 0..<100 {
            clock.advance(by: 1)
            try await cache.store(Data(repeating: 1, count: 2_000), metadata: .init(), for: CacheKey("\(number)"))
        }
        let statistics = await cache.statistics()
        #expect(statistics.removalErrors > 0)
        #expect(statistics.lastRemovalError?.underlyingError == SystemCallError(call: "rename", number: EPERM))
        #expect(self.folder.wholeByteCount() <= self.limit)
        #expect(try await cache.entry(for: CacheKey("stuck")) != nil)
        #expect(await cache.trim(to: 10_000).evictedEntries > 30)
        stuck.release()
        await cache.shutdown()
    }

    @Test(.enabled(if: StuckFile.isPossible, "the file system or the user cannot make files that cannot be deleted"))
    func `cache of entries that cannot be removed refuses a store`() async throws {
        let cache = self.makeCache(sizeLimit: self.limit)
        let keys = (0..<45).map { CacheKey("\($0)") }
        for key in keys { try await cache.store(Data(repeating: 1, count: 2_000), metadata: .init(), for: key) }
        await cache.waitForHousekeeping()
        let stuck = try keys.map { try StuckFile("\(self.folder.path)/\(EntryName($0).path)") }
        let error = await #expect(throws: CacheError.self) {
            try await cache.store(Data(repeating: 1, count: 20_000), metadata: .init(), for: CacheKey("new"))
        }
        #expect(error?.code == .cacheNotWritable)
        _ = await cache.trim(to: 0)
        _ = await cache.prune()
        #expect(await cache.statistics().entryCount == keys.count)
        for file in stuck { file.release() }
        #expect(await cache.trim(to: 0).evictedEntries == keys.count)
        await cache.shutdown()
    }
}

/// A file that not even root can remove or rename until it is released.
private final class StuckFile {
    private static let immutable: CInt = 0x10

    static let isPossible: Bool = {
        guard let folder = try? ScratchFolder() else { return false }
        let path = folder.path + "/file"
        guard FileManager.default.createFile(atPath: path, contents: nil), (try? StuckFile(path)) != nil else {
            return false
        }
        return true
    }()

    /// The current path.
    var path: String
    private let descriptor: CInt

    init(_ path: String) throws {
        self.path = path
        self.descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard self.descriptor >= 0, Self.set(true, self.descriptor) else { throw ScratchFolderError() }
    }

    deinit {
        self.release()
        close(self.descriptor)
    }

    func release() {
        _ = Self.set(false, self.descriptor)
    }

    /// Changes one flag with `FS_IOC_GETFLAGS` and `FS_IOC_SETFLAGS`, and preserves the others.
    private static func set(_ isImmutable: Bool, _ descriptor: CInt) -> Bool {
        var flags: CInt = 0
        guard ioctl(descriptor, 0x8008_6601, &flags) == 0 else { return false }
        flags = isImmutable ? flags | self.immutable : flags & ~self.immutable
        return ioctl(descriptor, 0x4008_6602, &flags) == 0
    }
}
