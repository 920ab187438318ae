// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

@Suite(.waiting, .timeLimit(.minutes(5))) struct LoadingTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        for name in ["flower.jpg", "flower.webp", "kodak-3.png"] {
            self.origin.script("/\(name)", .body(try Fixtures.data(name)))
        }
    }

    @Test func `a memory hit is the same pixels`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/kodak-3.png"))
        let first = try await loader.image(for: request)
        let second = try await loader.image(for: self.origin.url("/kodak-3.png"))
        #expect(first.pixels === second.pixels)
    }

    /// The counts depend neither on the spelling of the URL nor on the number of lookups in a load.
    @Test(arguments: ["/flower.webp", "/./flower.webp#fragment"], [nil, Resize.fit(width: 50, height: 50)])
    func `a miss counts as one miss and a hit as one hit`(path: String, thumbnail: Resize?) async throws {
        let loader = self.fixture.makeLoader()
        let url = try #require(URL(string: "https://origin.example\(path)"))
        func load() async throws {
            guard let thumbnail else { return _ = try await loader.image(for: url) }
            _ = try await loader.image(for: ImageRequest(url: url, thumbnail: thumbnail))
        }
        try await load()
        let missed = await loader.cache.statistics().memory
        #expect((missed.hits, missed.misses) == (0, 1))
        try await load()
        let hit = await loader.cache.statistics().memory
        #expect((hit.hits, hit.misses) == (1, 1))
    }

    /// The loader reads the bytes once.
    ///
    /// Under `revalidate` it does so after the origin has answered.
    @Test(arguments: [CachePolicy.neverRevalidate, .revalidate])
    func `bytes on disk are read once`(policy: CachePolicy) async throws {
        let loader = self.fixture.makeLoader()
        let url = self.origin.url("/flower.webp")
        _ = try await loader.data(for: ImageRequest(url: url, options: [.waitForStore]))
        let before = await loader.cache.statistics().disks.map(\.hits)
        _ = try await loader.data(for: ImageRequest(url: url, cachePolicy: policy))
        let after = await loader.cache.statistics().disks.map(\.hits)
        #expect(after.reduce(0, +) - before.reduce(0, +) <= 1)
    }

    @Test func `data is what the origin sent and is never decoded`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/flower.webp"))
        #expect(try await loader.data(for: request) == Fixtures.data("flower.webp"))
        #expect(try await loader.dataResponse(for: request).source == .disk)
        #expect(self.fixture.decodes.count == 0)
    }

    /// The codec decodes to the same size for all widths from 490 to 499.
    @Test func `every size of one source shares one request and the decodes that are equal`() async throws {
        let (gate, latch) = (Gate(), Latch())
        let coder = CountingCoder(JPEGCoder(), self.fixture.decodes, heldBy: latch)
        let loader = self.fixture.makeLoader {
            $0.coders = CoderRegistry(coders: [coder])
            // The latch holds one lane. The other lane reads the headers.
            $0.laneCount = 2
        }
        let url = self.origin.url("/ten.jpg")
        self.origin.script("/ten.jpg", .held(by: gate, body: Array(try Fixtures.data("flower.jpg"))))
        try await withThrowingTaskGroup(of: (Int, Image).self) { group in
            for width in 490..<500 {
                group.addTask {
                    let request = ImageRequest(url: url, thumbnail: .fit(width: width, height: width))
                    return (width, try await loader.image(for: request))
                }
            }
            await until { await loader.bytesWaiterCount == 10 }
            await gate.open()
            await until { await loader.decodeWaiterCount == 10 }
            latch.open()
            for try await (width, image) in group { #expect(image.width == width) }
        }
        #expect(self.origin.requestCount(for: "/ten.jpg") == 1)
        #expect(self.fixture.decodes.count == 1)
    }

    @Test(arguments: [
        (Resize.fit(width: 400, height: 400), 400, 267), (.fill(width: 300, height: 300), 300, 300),
        (.stretch(width: 100, height: 300), 100, 300), (.fit(width: 9_000, height: 9_000), 2_268, 1_512),
    ])
    func `thumbnails have their size`(thumbnail: Resize, width: Int, height: Int) async throws {
        let request = ImageRequest(url: self.origin.url("/flower.jpg"), thumbnail: thumbnail)
        let image = try await self.fixture.makeLoader().image(for: request)
        #expect((image.width, image.height) == (width, height))
    }

    @Test func `a reload loads again and replaces what is cached`() async throws {
        let loader = self.fixture.makeLoader()
        var request = ImageRequest(url: self.origin.url("/flower.webp"), options: [.waitForStore])
        _ = try await loader.image(for: request)
        self.origin.script("/flower.webp", .body(try Fixtures.data("kodak-3.png")))
        #expect(try await loader.image(for: request).width == 1_134)
        request.cachePolicy = .reload
        #expect(try await loader.image(for: request).width == 768)
        request.cachePolicy = nil
        #expect(try await loader.image(for: request).width == 768)
        #expect(try await self.fixture.makeLoader().image(for: request).width == 768)
    }

    @Test func `a page in place of a reloaded image leaves the cached one`() async throws {
        let url = self.origin.url("/flower.webp")
        let request = ImageRequest(url: url, options: [.waitForStore])
        _ = try await self.fixture.makeLoader().image(for: request)
        self.origin.script("/flower.webp", .body(Array("<html>try later</html>".utf8)))
        let loader = self.fixture.makeLoader()
        let reload = ImageRequest(url: url, cachePolicy: .reload)
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: reload) }
        #expect(error?.code == .notAnImage)
        #expect(try await loader.response(for: request).source == .disk)
    }

    @Test func `cache only never asks the origin`() async throws {
        let url = self.origin.url("/kodak-3.png")
        let loader = self.fixture.makeLoader()
        let cacheOnly = ImageRequest(url: url, cachePolicy: .cacheOnly)
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: cacheOnly) }
        #expect(error?.code == .notInCache)
        _ = try await loader.image(for: ImageRequest(url: url, options: [.waitForStore]))
        #expect(try await loader.response(for: cacheOnly).source == .memory)
        #expect(try await self.fixture.makeLoader().response(for: cacheOnly).source == .disk)
        #expect(self.origin.requestCount(for: "/kodak-3.png") == 1)
    }

    @Test func `skipped tiers stay empty`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(
            source: .init(url: self.origin.url("/kodak-3.png")),
            caching: .init(originals: .none),
            options: [.waitForStore]
        )
        _ = try await loader.image(for: request)
        #expect(loader.cache.memory.statistics.count == 0)
        #expect(self.fixture.cacheFiles().isEmpty)
    }

    @Test func `kept data comes with the image`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/flower.webp"), options: [.keepData])
        for _ in 0..<2 {
            #expect(try await loader.response(for: request).data == Fixtures.data("flower.webp"))
        }
        #expect(try await loader.response(for: ImageRequest(url: request.url)).data == nil)
        // The second load finds the image in memory, and reads only its bytes.
        #expect(self.fixture.decodes.count == 1)
    }

    @Test func `files and data URLs need no network and no disk`() async throws {
        let fixture = try LoaderFixture()
        let loader = fixture.makeLoader()
        let file = ImageRequest(url: Fixtures.url("kodak-3.png"), options: [.waitForStore])
        let inline = try Data(makePNG()).base64EncodedString()
        let data = ImageRequest(url: try #require(URL(string: "data:image/png;base64,\(inline)")))
        #expect(try await loader.response(for: file).source == .file)
        let response = try await loader.response(for: data)
        #expect(response.source == .file)
        #expect((response.image.width, response.image.height) == (8, 6))
        #expect(fixture.cacheFiles().isEmpty)
    }

    @Test func `header needs no pixels`() async throws {
        let loader = self.fixture.makeLoader()
        let header = try await loader.header(for: ImageRequest(url: self.origin.url("/flower.jpg")))
        #expect((header.pixelWidth, header.pixelHeight, header.format) == (2_268, 1_512, .jpeg))
        #expect(self.fixture.decodes.count == 0)
    }
}
