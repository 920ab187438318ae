import Foundation

/// Encoded bytes in memory to pixels in memory, on one thread.
enum Decoding {
    static let pictures = [
        ("decode-jpeg-12MP-422", Picture.camera),
        ("decode-jpeg-12MP-420", Picture.telephone),
        ("decode-jpeg-18MP-scans", Picture.progressive),
        ("decode-png-photo", Picture.pngPhotograph),
        ("decode-png-drawing", Picture.pngDrawing),
        ("decode-webp-photo", Picture.webpPhotograph),
    ]

    static let benchmarks = pictures.map { name, picture in
        let peers = picture.isJPEG ? "the C library, Pillow and pyvips" : "Pillow and pyvips"
        return Benchmark(name: name, summary: "\(picture.file), against \(peers)") { session in
            try await run(name, picture, session)
        }
    }

    private static func run(_ name: String, _ picture: Picture, _ session: Session) async throws -> [Row] {
        let path = try await picture.path(session)
        var contest = Contest()
        await contest.enterOurs { try TintypeDecoding.contestant(picture, path) }
        let plan = session.plan.limited(to: 11)
        if picture.isJPEG {
            await contest.enter(TurboBench.name) {
                try await TurboBench.contestant(picture, path, seconds: max(0.25, plan.sampleSeconds))
            }
            await contest.enter(CodecLoops.name("jpeg")) { try CodecLoops.decoder(picture, path) }
        }
        for (peer, job) in [("Pillow", "pillow-decode"), ("pyvips", "vips-decode")] {
            await contest.enter(peer) {
                try await session.python().contestant(job: job, path: path) { width, height in
                    // The peers leave the picture as it is stored; turned pictures are not among these.
                    try Check.size(width, height, is: (picture.width, picture.height))
                }
            }
        }
        try await contest.measure(plan)
        return contest.rows(named: name, .rate(picture.megapixels, "MP/s"))
            + contest.rows(named: name, .cpuRate(picture.megapixels, "MP/s")) { peer in
                peer == TurboBench.name || peer == CodecLoops.name("jpeg")
                    ? [.times(picture.isProgressive ? 0.95 : 1.05)] : [.times(1)]
            }
    }
}
