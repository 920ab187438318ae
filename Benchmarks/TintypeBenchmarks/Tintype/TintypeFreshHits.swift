// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype

/// Hits in a loader's memory for images with fresh responses.
enum TintypeFreshHits {
    /// The width of the images.
    private static let side = 32

    /// Requests one of the images repeatedly, under a policy that checks its freshness or one that does not.
    static func contestant(_ policy: CachePolicy) async throws -> Contestant {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        configuration.cachePolicy = policy
        let loader = LoaderActor(configuration: configuration)
        let requests = (0..<MemoryHits.entryCount).compactMap {
            URL(string: "http://127.0.0.1:9/photographs/image-\($0).jpg").map { ImageRequest(url: $0) }
        }
        let layout = try PixelLayout(format: .rgb8, width: self.side, height: self.side)
        for request in requests {
            let image = Image(pixels: try PixelBuffer(layout, filling: { _ in }))
            let outcome = await loader.cache.store(image, data: nil, metadata: self.metadata(), for: request.key)
            try Check.equal("the outcome", "\(outcome.map { "\($0)" } ?? "none")", "stored")
        }
        return Contestant { count in
            guard let request = requests.randomElement() else { throw Unavailable("there are no requests") }
            var widths = 0
            let measurement = try await Measurement.of(operations: count) {
                for _ in 0..<count { widths &+= try await loader.image(for: request).width }
            }
            try Check.equal("the number of hits", widths, self.side * count)
            return measurement
        }
    }

    private static func metadata() -> EntryMetadata {
        let freshness = Freshness(birth: Date(), lifetime: 86_400)
        let record = ResponseRecord(
            status: 200,
            fields: ["Cache-Control": "max-age=86400"],
            requestDate: Date(),
            responseDate: Date(),
            selectionDigest: nil,
            freshness: freshness
        )
        return EntryMetadata(formatName: "jpeg", response: record)
    }
}
