// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Tintype

/// Tintype's sides of cold loads: the loader, and its parts without a loader.
enum TintypeColdLoads {
    /// Assigns every load a separate address, so that loads are neither shared nor cached.
    private final class Addresses: Sendable {
        private let target: ColdLoads.Target
        private let last = Atomic<Int>(0)

        init(_ target: ColdLoads.Target) {
            self.target = target
        }

        func next() throws -> URL {
            let number = self.last.add(1, ordering: .relaxed).newValue
            guard let url = URL(string: "\(self.target.address)?\(number)") else {
                throw Unavailable("bad address \(self.target.address)")
            }
            return url
        }
    }

    /// Serves a photograph of about the size in `name` from the origin.
    static func target(_ name: String, side: Int?, _ session: Session) async throws -> ColdLoads.Target {
        let original = try Data(contentsOf: URL(fileURLWithPath: try await session.photographs.small(session)))
        let image = try ImageDecoder(original, registry: CoderRegistry()).decode()
        guard let side else {
            let address = try await session.nginx().serve("cold-\(name).jpg", original)
            return .init(address: address, byteCount: original.count, width: image.width, height: image.height)
        }
        let small = try image.resized(.fit(width: side, height: side))
        let data = try JPEGCoder().encode(small, as: .jpeg, options: EncodeOptions(quality: 75))
        let address = try await session.nginx().serve("cold-\(name).jpg", data)
        return .init(address: address, byteCount: data.count, width: small.width, height: small.height)
    }

    /// Serves an unchanged image from the origin.
    static func target(_ image: SubjectImage, _ session: Session) async throws -> ColdLoads.Target {
        let url = URL(fileURLWithPath: try await image.path(session))
        let data = try Data(contentsOf: url)
        let address = try await session.nginx().serve("cold-\(url.lastPathComponent)", data)
        return .init(address: address, byteCount: data.count, width: image.width, height: image.height)
    }

    /// `image(for:)` of a loader without a disk tier, so many at once.
    static func loader(
        _ target: ColdLoads.Target,
        showsPreviews: Bool = false,
        width: Int = ColdLoads.concurrency
    ) -> Contestant {
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        let loader = LoaderActor(configuration: configuration)
        let addresses = Addresses(target)
        let counts = width == 1 ? 3...2_000 : 300...200_000
        return Contestant(counts: counts, note: "\(target.byteCount) bytes; no disk tier") { count in
            try await Fetching.measure(count: count, width: width) { _ in
                let url = try addresses.next()
                let image =
                    showsPreviews
                    ? try await loader.image(for: ImageRequest(url: url, options: .previews))
                    : try await loader.image(for: url)
                try Check.size(image.width, image.height, is: (target.width, target.height))
            }
        }
    }

    /// Runs the same downloads and decodes in separate tasks, without sharing, counting or caching.
    static func bare(_ target: ColdLoads.Target) -> Contestant {
        let (downloads, lanes, registry) = (
            DownloadActor(), DecodeLanes(count: ProcessInfo.processInfo.activeProcessorCount), CoderRegistry()
        )
        let addresses = Addresses(target)
        return Contestant(counts: 300...200_000, note: "DownloadActor, then one visit to a decode lane") { count in
            try await Fetching.measure(count: count, width: ColdLoads.concurrency) { _ in
                let body = try await downloads.response(for: DownloadRequest(url: addresses.next())).body
                let image = try await lanes.run { try ImageDecoder(body, registry: registry).decode() }
                try Check.size(image.width, image.height, is: (target.width, target.height))
            }
        }
    }
}
