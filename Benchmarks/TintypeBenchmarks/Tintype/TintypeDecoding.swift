/// Tintype's side; it waits for the library's own API.
enum TintypeDecoding {
    static func contestant(_ picture: Picture, _ path: String) async throws -> Contestant {
        throw Unavailable("waits for the library")
    }
}
