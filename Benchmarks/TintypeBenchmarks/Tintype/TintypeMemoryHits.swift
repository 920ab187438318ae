import CAllocationCounter
import Foundation
import Tintype

/// Tintype's side of memory hits: a loader that has pictures in memory, one of them asked for
/// again and again.
enum TintypeMemoryHits {
    /// The width of the pictures.
    private static let side = 32

    /// Asks by a request that was built once.
    static func requestHits(_ session: Session) async throws -> Contestant {
        let filled = try await Filled(session)
        return self.contestant { try await filled.hitRequest($0) }
    }

    /// Asks by URL.
    static func urlHits(_ session: Session) async throws -> Contestant {
        let filled = try await Filled(session)
        return self.contestant { try await filled.hitURL($0) }
    }

    /// The heap allocations of `hits` hits by request.
    static func allocations(hits: Int, _ session: Session) async throws -> UInt64 {
        let filled = try await Filled(session)
        _ = try await filled.hitRequest(1000)
        allocation_counter_start()
        let widths = try await filled.hitRequest(hits)
        let count = allocation_counter_stop()
        try Check.equal("the number of hits", widths, self.side * hits)
        return count
    }

    /// How often the task was queued anew during `hits` hits by request.
    static func suspensions(hits: Int, _ session: Session) async throws -> Int {
        let filled = try await Filled(session)
        let executor = CountingExecutor()
        defer { executor.stop() }
        return try await withTaskExecutorPreference(executor) {
            let before = executor.count
            _ = try await filled.hitRequest(hits)
            return executor.count - before
        }
    }

    private static func contestant(_ hit: @escaping @Sendable (_ count: Int) async throws -> Int) -> Contestant {
        Contestant { count in
            var widths = 0
            let measurement = try await Measurement.of(operations: count) { widths = try await hit(count) }
            try Check.equal("the number of hits", widths, self.side * count)
            return measurement
        }
    }

    /// A loader that loaded its pictures over HTTP, and the request for one of them.
    private struct Filled: Sendable {
        let loader = TintypeLoader.withoutDisk()
        let url: URL
        let request: ImageRequest

        /// Loads as many pictures as the peers' caches have entries.
        init(_ session: Session) async throws {
            let origin = try await session.nginx()
            let png = try TintypeMemoryHits.picture()
            let urls = try (0..<MemoryHits.entryCount).compactMap {
                URL(string: try origin.serve("picture-\($0).png", png))
            }
            self.url = urls[urls.count / 2]
            self.request = ImageRequest(url: self.url)
            for url in urls { _ = try await self.loader.image(for: url) }
            let source = try await self.loader.response(for: self.request).source
            try Check.equal("the picture's source", "\(source)", "memory")
        }

        /// Asks `count` times by request and returns the widths of all pictures together.
        func hitRequest(_ count: Int) async throws -> Int {
            let (loader, request) = (self.loader, self.request)
            var widths = 0
            for _ in 0..<count { widths &+= try await loader.image(for: request).width }
            return widths
        }

        /// Asks `count` times by URL.
        func hitURL(_ count: Int) async throws -> Int {
            let (loader, url) = (self.loader, self.url)
            var widths = 0
            for _ in 0..<count { widths &+= try await loader.image(for: url).width }
            return widths
        }
    }

    /// A small black picture as PNG.
    private static func picture() throws -> Data {
        let layout = try PixelLayout(format: .rgb8, width: self.side, height: self.side)
        let image = try Image(pixels: PixelBuffer(layout, filling: { _ in }))
        return try CoderRegistry().coder(encoding: .png).encode(image, as: .png, options: EncodeOptions())
    }
}
