/// Tintype's side; it waits for the library's own API.
enum TintypeDiskHits {
    static func bytes(of path: String, _ session: Session) async throws -> Contestant {
        throw Unavailable("waits for the library")
    }

    static func picture(of path: String, _ session: Session) async throws -> Contestant {
        throw Unavailable("waits for the library")
    }
}
