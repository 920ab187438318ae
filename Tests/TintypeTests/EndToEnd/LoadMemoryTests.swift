// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// The encoded bytes that a loader holds while it loads many images at once.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LoadMemoryTests {
    private static let limit = 3_000_000
    private static let count = 40

    private let fixture: LoaderFixture
    private let image: [UInt8]

    init() throws {
        self.fixture = try LoaderFixture()
        // Decoders ignore bytes after the end of an image, so the large file is quick to decode.
        self.image = try makePNG() + [UInt8](repeating: 0, count: 1_200_000)
    }

    private func makeLoader() -> LoaderActor {
        self.fixture.makeLoader { configuration in
            configuration.downloads.bodyMemory = Self.limit
            // However busy the machine is, loads wait for memory that is about to be released.
            configuration.downloads.memoryPatience = .seconds(600)
            configuration.downloads.maximumConnectionsPerHost = Self.count
            configuration.disk?.pendingByteLimit = 1 << 30
        }
    }

    /// Loads thumbnails of all images at once.
    private func load(_ loader: LoaderActor, from url: (Int) -> URL) async throws {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<Self.count {
                let request = ImageRequest(url: url(number), thumbnail: .fit(width: 4, height: 4))
                group.addTask { try await loader.image(for: request).width }
            }
            for try await width in group { #expect(width == 4) }
        }
        // The loads release their bytes as they end.
        await until { await loader.downloads.counters.bodyBytes == 0 }
    }

    @Test func `bodies count from their first byte until they are decoded, wherever they come from`() async throws {
        let origin = try FaultyOrigin()
        for number in 0..<Self.count { origin.script("/\(number)", .body(self.image)) }
        #expect(self.image.count > 1_200_000)
        let loader = self.makeLoader()
        try await self.load(loader) { origin.url("/\($0)") }
        let counters = await loader.downloads.counters
        #expect(counters.memoryWaits > 0)
        #expect(counters.peakBodyBytes <= Self.limit + self.image.count * 5 / 4)
        await loader.cache.waitForPendingStores()

        let second = self.makeLoader()
        try await self.load(second) { origin.url("/\($0)") }
        #expect(await second.downloads.counters.started == 0)
        // Only a few reads of unknown size run at once.
        let peak = await second.downloads.counters.peakBodyBytes
        #expect(peak > 0 && peak <= Self.limit + self.image.count * 8)
    }

    @Test func `bodies of files count until they are decoded`() async throws {
        for number in 0..<Self.count { try self.fixture.directory.write(self.image, to: "\(number)") }
        let loader = self.makeLoader()
        try await self.load(loader) { self.fixture.directory.url(of: "\($0)") }
        let peak = await loader.downloads.counters.peakBodyBytes
        #expect(peak > 0 && peak <= Self.limit + self.image.count * 8)
    }

    @Test func `bytes that a caller was given count no more`() async throws {
        let origin = try FaultyOrigin(["/a": .body(self.image)])
        let loader = self.makeLoader()
        let response = try await loader.dataResponse(for: ImageRequest(url: origin.url("/a")))
        #expect(response.data.count == self.image.count)
        // The load releases the bytes as it ends, when the caller already has the response.
        await until { await loader.downloads.counters.bodyBytes == 0 }
        let image = try await loader.response(for: ImageRequest(url: origin.url("/a"), options: [.keepData]))
        #expect(image.data?.count == self.image.count)
        await until { await loader.downloads.counters.bodyBytes == 0 }
    }
}
