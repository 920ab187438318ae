// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeImage
import TintypeTestTraits

@testable import TintypeCaching

@Suite(.computing) struct MemoryCostTests {
    @Test(
        arguments: [
            (PixelFormat.rgba8, 640, 480, 1_228_800),
            (.rgb8, 640, 480, 921_600),
            (.gray8, 640, 480, 307_200),
        ]
    )
    func `cost is the bytes of the pixels`(format: PixelFormat, width: Int, height: Int, cost: Int) throws {
        #expect(MemoryEntry(image: try self.makeSized(format, width, height)).cost == cost)
    }

    @Test func `data that rides along and profiles count`() throws {
        let pixels = try self.makeSized(.rgba8, 640, 480).pixels
        let image = Image(pixels: pixels, colorProfile: ColorProfile(data: Data(count: 1_000)))
        #expect(MemoryEntry(image: image, data: Data(count: 427_672)).cost == 1_228_800 + 1_000 + 427_672)
    }

    @Test(arguments: [(5, 2, 2), (10, 1, 1), (16, 16, 16)])
    func `only distinct frames count`(count: Int, distinct: Int, factor: Int) throws {
        let images = try (0..<distinct).map { _ in try self.makeSized(.rgba8, 640, 600) }
        let frames = (0..<count).map { images[$0 % distinct] }
        let entry = MemoryEntry(image: frames[0], frames: frames)
        #expect(entry.cost == factor * 640 * 600 * 4)
    }

    @Test func `the cache counts with the whole cost`() throws {
        let cache = MemoryCache()
        let frames = try (0..<3).map { _ in try self.makeSized(.rgba8, 64, 64) }
        let entry = MemoryEntry(image: frames[0], frames: frames, data: Data(count: 77))
        cache.insert(entry, for: CacheKey("a"))
        #expect(cache.statistics.cost == 3 * 64 * 64 * 4 + 77)
        let found = try #require(cache.entry(for: CacheKey("a")))
        #expect(found.frames.map { ObjectIdentifier($0.pixels) } == frames.map { ObjectIdentifier($0.pixels) })
        #expect(found.data == entry.data)
    }

    @Test func `very small images are bounded by their number`() throws {
        let cache = MemoryCache(.init(costLimit: 512 * 1_100, keepsWeakly: false))
        let image = try makeImage()
        for index in 0..<1_300 { cache.insert(image, for: CacheKey("\(index)")) }
        #expect(cache.statistics.count == 1_100)
        #expect(cache.statistics.cost == 1_100 * (try unitCost()))
    }

    @Test func `metadata counts, with all fields of its response`() throws {
        let pad = String(repeating: "x", count: 60_000)
        let fields = HeaderFields((0..<4).map { HeaderField(name: "X-Padding-\($0)", value: pad) })
        let metadata = EntryMetadata(
            sourceURL: pad,
            etag: pad,
            response: self.makeRecord(fields),
            extra: ["note": pad]
        )
        let cost = MemoryEntry(image: try makeImage(), metadata: metadata).cost
        #expect((420_000..<421_000).contains(cost))
    }

    @Test func `tiny images with large metadata keep to the limit`() throws {
        let limit = 10 << 20
        let cache = MemoryCache(.init(costLimit: limit))
        let image = try makeImage()
        for index in 0..<6_000 {
            // All entries share one text, but each entry counts it.
            let metadata = EntryMetadata(response: self.makeRecord(["X-Padding": Self.padding]))
            cache.insert(image, metadata: metadata, for: CacheKey("\(index)"))
        }
        #expect(cache.statistics.count == limit / 240_160)
        #expect(cache.statistics.cost <= limit)
        // Weak references do not count, so the cache does not hold large entries weakly.
        #expect(cache.statistics.weakCount == 0)
    }

    @Test func `a long key counts`() throws {
        let limit = 10 << 20
        let cache = MemoryCache(.init(costLimit: limit))
        let query = String(repeating: "q", count: 100_000)
        for index in 0..<1_000 { cache.insert(try makeImage(), for: CacheKey("\(query)\(index)")) }
        #expect(cache.statistics.count == limit / 99_600)
        #expect(cache.statistics.weakCount == 0)
    }

    @Test func `a profile that was cut from a file does not keep the file`() throws {
        let freed = Freed()
        do {
            let block = UnsafeMutableRawPointer.allocate(byteCount: 1_000, alignment: 1)
            let file = Data(
                bytesNoCopy: block,
                count: 1_000,
                deallocator: .custom { block, _ in
                    block.deallocate()
                    freed.isFreed = true
                }
            )
            freed.profile = ColorProfile(data: file[100..<200])
        }
        #expect(freed.isFreed)
        #expect(freed.profile?.data.count == 100)
    }

    private static let padding = String(repeating: "x", count: 240_000)

    private func makeRecord(_ fields: HeaderFields) -> ResponseRecord {
        ResponseRecord(
            status: 200,
            fields: fields,
            requestDate: Date(),
            responseDate: Date(),
            selectionDigest: nil,
            freshness: Freshness(birth: Date())
        )
    }

    private func makeSized(_ format: PixelFormat, _ width: Int, _ height: Int) throws -> Image {
        let layout = try PixelLayout(format: format, width: width, height: height)
        return Image(pixels: try PixelBuffer(layout, filling: { _ in }))
    }
}

/// A record of whether memory was freed, with a reference that may keep it alive.
private final class Freed {
    var isFreed = false
    var profile: ColorProfile?
}
