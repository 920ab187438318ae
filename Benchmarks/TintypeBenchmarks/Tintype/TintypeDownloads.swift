/// Tintype's side; it waits for the library's own API.
enum TintypeDownloads {
    static func contestant(_ target: Downloads.Target) async throws -> Contestant {
        throw Unavailable("waits for the library")
    }
}
