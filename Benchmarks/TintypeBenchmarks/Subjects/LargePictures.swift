import Foundation

/// Peak memory of one picture of 100 megapixels, loaded as a thumbnail of 400 pixels.
enum LargePictures {
    private static let name = "large-jpeg-peak"
    /// The peer in whose row the bar stands; it is not set against a peer.
    private static let rival = "pyvips"

    static let benchmarks = [
        Benchmark(name: name, summary: "peak memory of a 100 MP JPEG to 400 px over the same idle process") { session in
            let path = try await session.photographs.enormous(session)
            var contest = Contest()
            await contest.enterOurs { try TintypeLargePicture.fromFile(path) }
            for (peer, job) in [(Self.rival, "vips-thumbnail"), ("Pillow", "pillow-thumbnail")] {
                await contest.enter(peer) {
                    let worker = try await session.python()
                    return ChildJob.contestant(worker.command + ["--peak", job, path], note: "the file by name")
                }
            }
            try await contest.measure(session.plan.limited(to: 3))
            return contest.rows(named: Self.name, .peak) { $0 == Self.rival ? [.under(64)] : [] }
                + contest.rows(named: Self.name, .wall(.milliseconds))
        },
        Benchmark(name: name + "-http", summary: "the same over HTTP, the body in memory and stored on disk") {
            session in
            let path = try await session.photographs.enormous(session)
            var contest = Contest()
            await contest.enterOurs { try await TintypeLargePicture.overHTTP(path, session) }
            try await contest.measure(session.plan.limited(to: 3))
            return contest.rows(named: Self.name + "-http", .peak) { _ in [.under(64)] }
        },
    ]
}
