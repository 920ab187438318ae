import Foundation
import Tintype

/// Tintype's side of the large picture: a loader in a child process.
enum TintypeLargePicture {
    /// Loads the file at `path`, by its `file:` URL.
    static func fromFile(_ path: String) throws -> Contestant {
        try ChildJob.ours(["large-thumbnail", URL(fileURLWithPath: path).absoluteString], note: "a file: URL")
    }

    /// Loads the same file over HTTP.
    static func overHTTP(_ path: String, _ session: Session) async throws -> Contestant {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let address = try await session.nginx().serve("large.jpg", bytes)
        return try ChildJob.ours(["large-thumbnail", address], note: "over HTTP, with the disk tier on")
    }

    /// The child's job: one thumbnail of `address`, encoded as JPEG as the peers do.
    static func load(_ address: String) async throws {
        guard let url = URL(string: address) else { throw Unavailable("bad address \(address)") }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tintype-large-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = LoaderActor.Configuration()
        configuration.disk = DiskCache.Configuration(directory: folder)
        let loader = LoaderActor(configuration: configuration)
        let request = ImageRequest(url: url, thumbnail: .fit(width: 400, height: 400), options: [.waitForStore])
        try await ChildJob.measure {
            let image = try await loader.image(for: request)
            _ = try await loader.encode(image, as: .jpeg, options: EncodeOptions(quality: 80))
            return (image.width, image.height)
        }
    }
}
