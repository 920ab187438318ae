// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype

/// Tintype's side of disk hits: requests bypass the memory tier of a loader whose disk tier has the image.
enum TintypeDiskHits {
    /// Returns the encoded bytes of the file at `path`, after a load over HTTP.
    static func bytes(of path: String, _ session: Session) async throws -> Contestant {
        let (loader, request) = try await self.warmed(path, session)
        let size = try Data(contentsOf: URL(fileURLWithPath: path)).count
        return Contestant { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let bytes = try await loader.data(for: request).count
                    try Check.equal("the number of bytes", bytes, size)
                }
            }
        }
    }

    /// Returns the decoded image of the file at `path`.
    static func image(of path: String, _ session: Session) async throws -> Contestant {
        let (loader, request) = try await self.warmed(path, session)
        return Contestant { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let width = try await loader.image(for: request).width
                    try Check.equal("the width", width, 800)
                }
            }
        }
    }

    /// Returns the image of the file at `path` as a JPEG from the disk tier.
    static func encoded(of path: String, _ session: Session) async throws -> Contestant {
        let (loader, request, size) = try await self.encoded(path, session)
        return Contestant { count in
            try await Measurement.of(operations: count) {
                for _ in 0..<count {
                    let bytes = try await loader.encoded(request, as: self.encoding, caching: .disk).data.count
                    try Check.equal("the number of bytes", bytes, size)
                }
            }
        }
    }

    /// A plain read of a file with the bytes of that JPEG.
    static func plainReadOfEncoded(_ path: String, _ session: Session) async throws -> Contestant {
        let (loader, request, _) = try await self.encoded(path, session)
        let data = try await loader.encoded(request, as: self.encoding, caching: .disk).data
        let copy = session.folders.temporary.appendingPathComponent("encoded-\(UUID()).jpg")
        try data.write(to: copy)
        return DiskHits.plainRead(copy.path)
    }

    private static let encoding = OutputEncoding.jpeg(quality: 85)

    private static func encoded(
        _ path: String,
        _ session: Session
    ) async throws -> (LoaderActor, ImageRequest, Int) {
        let (loader, request) = try await self.warmed(path, session)
        var waiting = request
        waiting.options = .waitForStore
        let size = try await loader.encoded(waiting, as: self.encoding, caching: .disk).data.count
        let response = try await loader.encoded(request, as: self.encoding, caching: .disk)
        try Check.equal("the source", "\(response.source)", "disk")
        return (loader, request, size)
    }

    private static func warmed(_ path: String, _ session: Session) async throws -> (LoaderActor, ImageRequest) {
        let address = try await session.nginx().serve("disk.jpg", Data(contentsOf: URL(fileURLWithPath: path)))
        guard let url = URL(string: address) else { throw Unavailable("bad address \(address)") }
        let folder = session.folders.temporary.appendingPathComponent("disk-\(UUID())")
        let loader = TintypeLoader.withDisk(in: folder)
        _ = try await loader.data(
            for: ImageRequest(source: .init(url: url), caching: .init(originals: .disk), options: [.waitForStore])
        )
        // A miss would be an error, because the network is not available here.
        let request = ImageRequest(source: .init(url: url), caching: .init(originals: .disk, policy: .cacheOnly))
        try Check.equal("the image's source", "\(try await loader.response(for: request).source)", "disk")
        return (loader, request)
    }
}
