// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Measures peak memory for one image of about 100 megapixels, loaded as a thumbnail of 400 pixels or scaled down to
/// the usual limit.
enum LargeImages {
    private static let name = "large-jpeg-peak"
    private static let pngName = "large-png-peak"
    /// The peer whose row shows the bar.
    ///
    /// The bar is not relative to a peer.
    private static let rival = "pyvips"

    static let benchmarks = [
        Benchmark(name: name, summary: "peak memory of a 100 MP JPEG to 400 px over the same idle process") { session in
            let path = try await session.photographs.enormous(session)
            return try await thumbnails(name, path, height: 256, bar: .under(64), session)
        },
        Benchmark(name: name + "-http", summary: "the same over HTTP, the body in memory and stored on disk") {
            session in
            let path = try await session.photographs.enormous(session)
            var contest = Contest()
            await contest.enterOurs { try await TintypeLargeImage.overHTTP(path, session) }
            try await contest.measure(session.plan.limited(to: 3))
            return contest.rows(named: Self.name + "-http", .peak) { _ in [.under(64)] }
        },
        Benchmark(name: pngName, summary: "peak memory of a 96 MP PNG to 400 px over the same idle process") {
            session in
            let path = try await session.photographs.enormousPNG(session)
            return try await thumbnails(pngName, path, height: 267, bar: .under(32), session)
        },
        Benchmark(name: pngName + "-scale-down", summary: "peak memory of a 96 MP PNG to 60 MiB of pixels") { session in
            let path = try await session.photographs.enormousPNG(session)
            var contest = Contest()
            await contest.enterOurs { try TintypeLargeImage.scaledDown(path) }
            try await contest.measure(session.plan.limited(to: 3))
            // 4857x3238 in RGB are 45 MiB. The strip and everything else may take 32 more.
            return contest.rows(named: Self.pngName + "-scale-down", .peak) { _ in [.under(45 + 32)] }
                + contest.rows(named: Self.pngName + "-scale-down", .wall(.milliseconds))
        },
        Benchmark(name: "large-peak-1000", summary: "peak memory of about 100 MP to 1,000 px: JPEG and PNG") {
            try await thousands($0)
        },
    ]

    /// Measures thumbnails, whose limit is the target and 32 MiB for a strip and everything else.
    ///
    /// For a progressive JPEG, it also includes the coefficients, which the codec must hold: two bytes for each sample
    /// at 4:2:0.
    private static func thousands(_ session: Session) async throws -> [Row] {
        let mebibyte = 1_048_576.0
        let target = 1_000 * 640 * 3 / mebibyte
        let coefficients = 12_500 * 8_000 * 1.5 * 2 / mebibyte
        var rows: [Row] = []
        for (name, path, height, extra) in [
            ("large-jpeg-peak-1000", try await session.photographs.enormous(session), 640, 0),
            (
                "large-jpeg-scans-peak-1000", try await session.photographs.enormousProgressive(session), 640,
                coefficients
            ),
            ("large-png-peak-1000", try await session.photographs.enormousPNG(session), 667, 0),
        ] {
            var contest = Contest()
            await contest.enterOurs { try TintypeLargeImage.toThousand(path, height: height) }
            try await contest.measure(session.plan.limited(to: 3))
            rows += contest.rows(named: name, .peak) { _ in [.under(target + 32 + extra)] }
        }
        return rows
    }

    private static func thumbnails(
        _ name: String,
        _ path: String,
        height: Int,
        bar: Bar,
        _ session: Session
    ) async throws -> [Row] {
        let check = ChildJob.isThumbnail(height: height)
        var contest = Contest()
        await contest.enterOurs { try TintypeLargeImage.fromFile(path, check: check) }
        for (peer, job) in [(Self.rival, "vips-thumbnail"), ("Pillow", "pillow-thumbnail")] {
            await contest.enter(peer) {
                let worker = try await session.python()
                let command = worker.command + ["--peak", job, path]
                return ChildJob.contestant(command, note: "the file by name", check: check)
            }
        }
        try await contest.measure(session.plan.limited(to: 3))
        return contest.rows(named: name, .peak) { $0 == Self.rival ? [bar] : [] }
            + contest.rows(named: name, .wall(.milliseconds))
    }
}
