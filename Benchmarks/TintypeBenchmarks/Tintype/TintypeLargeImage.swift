// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype

/// Tintype's side of the large image: a loader in a child process.
enum TintypeLargeImage {
    /// Loads the file at `path`, by its `file:` URL.
    static func fromFile(
        _ path: String,
        check: @escaping @Sendable (ChildJob.Answer) throws -> Void
    ) throws -> Contestant {
        let job = ["large-thumbnail", URL(fileURLWithPath: path).absoluteString]
        return try ChildJob.ours(job, note: "a file: URL", check: check)
    }

    /// Loads the file at `path` into 1,000 pixels a side, and does not encode it.
    static func toThousand(_ path: String, height: Int) throws -> Contestant {
        let job = ["large-thousand", URL(fileURLWithPath: path).absoluteString]
        return try ChildJob.ours(job, note: "a file: URL, not encoded") {
            try Check.size($0.width, $0.height, is: (1_000, height))
        }
    }

    /// Loads the file at `path` with the usual limit for the bytes of its pixels.
    static func scaledDown(_ path: String) throws -> Contestant {
        let job = ["large-scale-down", URL(fileURLWithPath: path).absoluteString]
        return try ChildJob.ours(job, note: "a file: URL, scaleDownLimit 60 MiB, not encoded") { answer in
            let bytes = answer.width * answer.height * 4
            let limit = ImageRequest.Rendering.defaultScaleDownLimit
            guard bytes <= limit, bytes > limit / 100 * 99 else {
                throw Unavailable("the image is \(answer.width)x\(answer.height)")
            }
        }
    }

    /// Loads the same file over HTTP.
    static func overHTTP(_ path: String, _ session: Session) async throws -> Contestant {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let address = try await session.nginx().serve("large.jpg", bytes)
        let check = ChildJob.isThumbnail(height: 256)
        return try ChildJob.ours(["large-thumbnail", address], note: "over HTTP, with the disk tier on", check: check)
    }

    /// The child's job: one thumbnail of `address`, encoded as JPEG as the peers do.
    static func load(_ address: String) async throws {
        try await self.measure(address, thumbnail: .fit(width: 400, height: 400)) { image, loader in
            _ = try await loader.encode(image, as: .jpeg, options: EncodeOptions(quality: 80))
        }
    }

    /// The child's job: a thumbnail of `address` of 1,000 pixels.
    static func loadThousand(_ address: String) async throws {
        try await self.measure(address, thumbnail: .fit(width: 1_000, height: 1_000)) { _, _ in }
    }

    /// Performs the child's job: loads the image at `address`, scaled down to the usual limit.
    static func scaleDown(_ address: String) async throws {
        try await self.measure(address, scaleDownLimit: ImageRequest.Rendering.defaultScaleDownLimit) { _, _ in }
    }

    private static func measure(
        _ address: String,
        thumbnail: Resize? = nil,
        scaleDownLimit: Int? = nil,
        finish: (Image, LoaderActor) async throws -> Void
    ) async throws {
        guard let url = URL(string: address) else { throw Unavailable("bad address \(address)") }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tintype-large-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = LoaderActor.Configuration()
        configuration.disk = DiskCache.Configuration(directory: folder)
        let loader = LoaderActor(configuration: configuration)
        let request = ImageRequest(
            source: .init(url: url),
            rendering: .init(thumbnail: thumbnail, scaleDownLimit: scaleDownLimit),
            options: [.waitForStore]
        )
        try await ChildJob.measure {
            let image = try await loader.image(for: request)
            try await finish(image, loader)
            return (image.width, image.height)
        }
    }
}
