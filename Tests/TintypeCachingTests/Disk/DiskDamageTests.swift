// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.waiting, .timeLimit(.minutes(30))) struct DiskDamageTests {
    private let folder: ScratchFolder
    private let cache: DiskCache
    private let key = CacheKey("k")

    init() throws {
        self.folder = try ScratchFolder()
        self.cache = DiskCache(.init(directory: self.folder.url))
    }

    private var path: String { self.folder.path(of: self.key) }

    private func storedFile() async throws -> Data {
        try await self.cache.store(makeData(20), metadata: .init(formatName: "png"), for: self.key)
        return try Data(contentsOf: URL(filePath: self.path))
    }

    /// Replaces the entry with `file`, and expects a miss that removes the file.
    private func expectMiss(_ file: Data, _ comment: Comment) async throws {
        _ = try await self.storedFile()
        try file.write(to: URL(filePath: self.path))
        let entry = try await self.cache.entry(for: self.key)
        #expect(entry == nil, comment)
        #expect(self.folder.files() == [], comment)
    }

    @Test func `each flipped bit is a miss and removed`() async throws {
        let file = try await self.storedFile()
        for position in 0..<file.count {
            for bit in 0..<8 {
                var damaged = file
                damaged[position] ^= 1 << UInt8(bit)
                try await self.expectMiss(damaged, "bit \(bit) of byte \(position)")
            }
        }
        let statistics = await self.cache.statistics()
        #expect(statistics.damagedEntries == file.count * 8)
        #expect(statistics.entryCount == 0)
        #expect(statistics.byteCount == 0)
    }

    @Test func `each truncation is a miss and removed`() async throws {
        let file = try await self.storedFile()
        for count in 0..<file.count {
            try await self.expectMiss(file.prefix(count), "the first \(count) bytes")
        }
    }

    @Test(arguments: [1, 100, 100_000])
    func `trailing bytes are a miss and removed`(count: Int) async throws {
        let file = try await self.storedFile()
        try await self.expectMiss(file + makeData(count), "\(count) more bytes")
    }

    @Test(arguments: [0, 1, 71, 72, 73, 10_000])
    func `garbage is a miss and removed`(count: Int) async throws {
        _ = try await self.storedFile()
        try await self.expectMiss(makeData(count), "\(count) random bytes")
    }

    @Test func `another version is a miss`() async throws {
        var file = try await self.storedFile()
        file[8] = 1
        try await self.expectMiss(file, "version 1")
    }

    @Test func `entry of another key under the name is a miss`() async throws {
        let other = CacheKey("another key")
        try await self.cache.store(makeData(20), metadata: .init(), for: other)
        let file = try Data(contentsOf: URL(filePath: self.folder.path(of: other)))
        try await self.cache.remove(other)
        _ = try await self.storedFile()
        try await self.expectMiss(file, "an entry of another key")
    }

    @Test func `metadata is checked without its bytes`() async throws {
        let file = try await self.storedFile()
        let headByteCount = file.count - 20
        for position in 0..<file.count {
            _ = try await self.storedFile()
            var damaged = file
            damaged[position] ^= 1
            try damaged.write(to: URL(filePath: self.path))
            let metadata = try await self.cache.metadata(for: self.key)
            #expect(metadata?.formatName == (position < headByteCount ? nil : "png"), "byte \(position)")
            #expect(self.folder.files() == (position < headByteCount ? [] : [self.path]), "byte \(position)")
        }
        // A truncated file is damaged, even if its metadata is complete.
        try file.dropLast().write(to: URL(filePath: self.path))
        #expect(try await self.cache.metadata(for: self.key) == nil)
    }

    @Test func `store after damage heals`() async throws {
        let file = try await self.storedFile()
        try await self.expectMiss(file.dropLast(), "a torn write")
        _ = try await self.storedFile()
        #expect(try await self.cache.entry(for: self.key)?.data == makeData(20))
    }

    @Test func `symbolic link is a miss and is left alone as is its target`() async throws {
        let file = try await self.storedFile()
        let target = self.folder.path + "/target"
        try file.write(to: URL(filePath: target))
        unlink(self.path)
        #expect(symlink(target, self.path) == 0)
        #expect(try await self.cache.entry(for: self.key) == nil)
        #expect(self.folder.files() == [target])
        await self.expectStoreIsRefused()
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: self.path) == target)
        #expect(try Data(contentsOf: URL(filePath: target)) == file)
    }

    /// Expects that a store reports what is in its way.
    private func expectStoreIsRefused() async {
        let error = await #expect(throws: CacheError.self) {
            try await self.cache.store(makeData(20), metadata: .init(), for: self.key)
        }
        #expect(error?.code == .cacheNotWritable)
        #expect(error?.underlyingError == SystemCallError(call: "rename", number: EEXIST))
    }

    @Test func `pipe in the place of an entry does not block and is left alone`() async throws {
        _ = try await self.storedFile()
        unlink(self.path)
        #expect(mkfifo(self.path, 0o600) == 0)
        #expect(try await self.cache.entry(for: self.key) == nil)
        await self.expectStoreIsRefused()
        #expect(access(self.path, F_OK) == 0)
    }

    @Test func `folder in the place of an entry is a miss and a store says so`() async throws {
        _ = try await self.storedFile()
        unlink(self.path)
        #expect(mkdir(self.path, 0o700) == 0)
        #expect(try await self.cache.entry(for: self.key) == nil)
        await self.expectStoreIsRefused()
        #expect(self.folder.files() == [])
    }

    @Test func `prune removes what begins as an entry and is none`() async throws {
        let file = try await self.storedFile()
        let other = self.folder.path(of: CacheKey("x"))
        try FileManager.default.createDirectory(
            at: URL(filePath: other).deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try (file.prefix(8) + makeData(492)).write(to: URL(filePath: other))
        let foreign = self.folder.path(of: CacheKey("y"))
        try FileManager.default.createDirectory(
            at: URL(filePath: foreign).deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try makeData(500).write(to: URL(filePath: foreign))
        let result = await self.cache.prune()
        #expect(result.damagedEntries == 1)
        #expect(result.freedByteCount == 500)
        #expect(self.folder.files() == [self.path, foreign].sorted())
        #expect(try Data(contentsOf: URL(filePath: foreign)) == makeData(500))
    }

    /// Existing entries must stay readable, so a change of the format must change the version.
    @Test func `file format is stable`() async throws {
        let cache = DiskCache(.init(directory: self.folder.url, now: { Date(timeIntervalSince1970: 1_700_000_000) }))
        try await cache.store(Data("body".utf8), metadata: .init(formatName: "png"), for: self.key)
        let file = try Data(contentsOf: URL(filePath: self.path))
        let head: [UInt8] = [0x89, 0x54, 0x49, 0x4E, 0x54, 0x59, 0x50, 0x45, 2, 0, 0, 0, 0, 0, 0, 0]
        let rest: [UInt8] =
            [1, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xFC, 0x54, 0xD9, 0x41]
            + [0, 0, 0, 0x40, 0xFC, 0x54, 0xD9, 0x41, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F]
            + Array("k".utf8) + [1, 1, 3, 0, 0, 0] + Array("png".utf8) + Array("body".utf8)
        #expect(Array(file.prefix(16)) == head)
        #expect(Array(file.dropFirst(32)) == rest)
    }
}
