/// Tintype's side; it waits for the library's own API.
enum TintypeLargePicture {
    static func contestant(_ path: String) async throws -> Contestant {
        throw Unavailable("waits for the library")
    }

    static func load(_ path: String) async throws {
        throw Unavailable("waits for the library")
    }
}
