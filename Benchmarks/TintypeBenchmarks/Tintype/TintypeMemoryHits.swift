// SPDX-License-Identifier: Apache-2.0

import CTintypeAllocationCounter
import Foundation
import Tintype

/// Tintype's side of memory hits: each sample repeatedly requests one of the images in a loader's memory.
enum TintypeMemoryHits {
    /// The width of the images.
    private static let side = 32

    /// The kind of request for the image.
    enum Way: Sendable {
        /// The very request that loaded it.
        case same
        /// Another, equal request, built once.
        case equal
        /// The URL.
        case url
    }

    /// Asks in one of three ways.
    static func contestant(_ way: Way, _ session: Session) async throws -> Contestant {
        let filled = try await Filled(session)
        return Contestant { count in
            var widths = 0
            let request = try filled.anyRequest()
            let equal = ImageRequest(url: request.url)
            let measurement = try await Measurement.of(operations: count) {
                widths =
                    switch way {
                    case .same: try await filled.hit(request, count)
                    case .equal: try await filled.hit(equal, count)
                    case .url: try await filled.hit(request.url, count)
                    }
            }
            try Check.equal("the number of hits", widths, self.side * count)
            return measurement
        }
    }

    /// Creates a new request for each operation.
    static func requestContestant() throws -> Contestant {
        guard let url = URL(string: "http://127.0.0.1:9/photographs/image-1.jpg") else {
            throw Unavailable("the URL is none")
        }
        return Contestant { count in
            var widths = 0
            let measurement = await Measurement.of(operations: count) {
                for _ in 0..<count { widths &+= self.request(url).thumbnail?.width ?? 0 }
            }
            try Check.equal("the widths", widths, self.side * count)
            return measurement
        }
    }

    @inline(never)
    private static func request(_ url: URL) -> ImageRequest {
        ImageRequest(
            url: url,
            headers: ["Accept": "image/webp", "X-User": "7"],
            thumbnail: .fit(width: self.side, height: self.side),
            priority: .low
        )
    }

    /// The heap allocations of `hits` hits by request.
    static func allocations(hits: Int, _ session: Session) async throws -> UInt64 {
        let filled = try await Filled(session)
        let request = try filled.anyRequest()
        _ = try await filled.hit(request, 1000)
        allocation_counter_start()
        let widths = try await filled.hit(request, hits)
        let count = allocation_counter_stop()
        try Check.equal("the number of hits", widths, self.side * hits)
        return count
    }

    /// Returns how often the task was queued again during `hits` hits by request.
    static func suspensions(hits: Int, _ session: Session) async throws -> Int {
        let filled = try await Filled(session)
        let request = try filled.anyRequest()
        let executor = CountingExecutor()
        defer { executor.stop() }
        return try await withTaskExecutorPreference(executor) {
            let before = executor.count
            _ = try await filled.hit(request, hits)
            return executor.count - before
        }
    }

    /// Requests encoded images.
    static func encodedContestant(_ session: Session) async throws -> Contestant {
        let filled = try await Filled(session)
        let encoding = OutputEncoding.webp(quality: 75)
        for request in filled.requests { _ = try await filled.loader.encoded(request, as: encoding) }
        return Contestant { count in
            var sizes = 0
            let request = try filled.anyRequest()
            let size = try await filled.loader.encoded(request, as: encoding).data.count
            let measurement = try await Measurement.of(operations: count) {
                sizes = try await filled.hitEncoded(request, encoding, count)
            }
            try Check.equal("the number of bytes", sizes, size * count)
            return measurement
        }
    }

    /// The heap allocations of `hits` encoded hits.
    static func encodedAllocations(hits: Int, _ session: Session) async throws -> UInt64 {
        let filled = try await Filled(session)
        let (request, encoding) = (try filled.anyRequest(), OutputEncoding.webp(quality: 75))
        _ = try await filled.hitEncoded(request, encoding, 1000)
        allocation_counter_start()
        let sizes = try await filled.hitEncoded(request, encoding, hits)
        let count = allocation_counter_stop()
        try Check.equal("the hits", sizes > 0 && sizes.isMultiple(of: hits), true)
        return count
    }

    /// A loader that has loaded its images over HTTP, and the requests for them.
    private struct Filled: Sendable {
        let loader = TintypeLoader.withoutDisk()
        let requests: [ImageRequest]

        /// Loads as many images as the peers' caches have entries.
        init(_ session: Session) async throws {
            let origin = try await session.nginx()
            let png = try TintypeMemoryHits.picture()
            let urls = try (0..<MemoryHits.entryCount).compactMap {
                URL(string: try origin.serve("image-\($0).png", png))
            }
            self.requests = urls.map { ImageRequest(url: $0) }
            for request in self.requests {
                _ = try await self.loader.image(for: request)
                let source = try await self.loader.response(for: request).source
                try Check.equal("the image's source", "\(source)", "memory")
            }
        }

        /// Requests the image `count` times, and returns the sum of the widths.
        func hit(_ request: ImageRequest, _ count: Int) async throws -> Int {
            let loader = self.loader
            var widths = 0
            for _ in 0..<count { widths &+= try await loader.image(for: request).width }
            return widths
        }

        /// Requests the encoded image `count` times, and returns the sum of the sizes.
        func hitEncoded(_ request: ImageRequest, _ encoding: OutputEncoding, _ count: Int) async throws -> Int {
            let loader = self.loader
            var sizes = 0
            for _ in 0..<count { sizes &+= try await loader.encoded(request, as: encoding).data.count }
            return sizes
        }

        /// Asks `count` times by URL.
        func hit(_ url: URL, _ count: Int) async throws -> Int {
            let loader = self.loader
            var widths = 0
            for _ in 0..<count { widths &+= try await loader.image(for: url).width }
            return widths
        }

        /// Returns a random request.
        ///
        /// The position of a key in the table is random, so each sample chooses another key.
        func anyRequest() throws -> ImageRequest {
            guard let request = self.requests.randomElement() else { throw Unavailable("there are no requests") }
            return request
        }
    }

    /// Returns a small black image as PNG.
    private static func picture() throws -> Data {
        let layout = try PixelLayout(format: .rgb8, width: self.side, height: self.side)
        let image = try Image(pixels: PixelBuffer(layout, filling: { _ in }))
        return try CoderRegistry().coder(encoding: .png).encode(image, as: .png, options: EncodeOptions())
    }
}
