// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype

/// Tintype's side of thumbnails: a loader without caches, and the encoder, on one decode lane.
///
/// The loader reads the image from its `file:` URL, so each sample also reads the file from the system's page cache.
/// The peers have the bytes in memory.
enum TintypeThumbnails {
    /// Makes the thumbnail of the file at `path`.
    static func contestant(_ job: Thumbnails.Job, _ path: String) -> Contestant {
        let loader = TintypeLoader.withoutDisk()
        return Contestant(note: "one decode lane; reading the file is included") { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let image = try await self.thumbnail(job, path, loader)
                    _ = try await self.encoded(image, job, loader)
                    try Check.size(image.width, image.height, is: job.result)
                }
            }
        }
    }

    /// Writes the result of ``contestant(_:_:)`` to a file.
    static func write(_ job: Thumbnails.Job, _ original: String, to path: String) async throws {
        let loader = TintypeLoader.withoutDisk()
        let image = try await self.thumbnail(job, original, loader)
        try await self.encoded(image, job, loader).write(to: URL(fileURLWithPath: path))
    }

    private static func thumbnail(_ job: Thumbnails.Job, _ path: String, _ loader: LoaderActor) async throws -> Image {
        let box = Resize.fit(width: job.side, height: job.side)
        let url = URL(fileURLWithPath: path)
        let request = ImageRequest(
            source: .init(url: url),
            rendering: .init(thumbnail: box),
            caching: .init(originals: .none, variants: .none)
        )
        return try await loader.image(for: request)
    }

    private static func encoded(_ image: Image, _ job: Thumbnails.Job, _ loader: LoaderActor) async throws -> Data {
        let format: ImageFormat =
            switch job.format {
            case "jpeg": .jpeg
            case "webp": .webp
            default: .png
            }
        return try await loader.encode(image, as: format, options: EncodeOptions(quality: Thumbnails.Job.quality))
    }
}
