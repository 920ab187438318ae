/// Tintype's side; it waits for the library's own API.
enum TintypeMemoryHits {
    static func requestHits() async throws -> Contestant {
        throw Unavailable("waits for the library")
    }

    static func urlHits() async throws -> Contestant {
        throw Unavailable("waits for the library")
    }

    static func allocations(hits: Int) async throws -> UInt64 {
        throw Unavailable("waits for the library")
    }

    static func suspensions(hits: Int) async throws -> Int {
        throw Unavailable("waits for the library")
    }
}
