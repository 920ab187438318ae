/// Tintype's side; it waits for the library's own API.
enum TintypeThumbnails {
    static func contestant(_ job: Thumbnails.Job, _ path: String) async throws -> Contestant {
        throw Unavailable("waits for the library")
    }

    static func write(_ job: Thumbnails.Job, _ original: String, to path: String) async throws {
        throw Unavailable("waits for the library")
    }
}
