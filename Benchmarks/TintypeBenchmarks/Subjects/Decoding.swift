// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Encoded bytes in memory to pixels in memory, on one thread.
enum Decoding {
    static let images = [
        ("decode-jpeg-12MP-422", SubjectImage.camera),
        ("decode-jpeg-12MP-420", SubjectImage.telephone),
        ("decode-jpeg-18MP-scans", SubjectImage.progressive),
        ("decode-png-photo", SubjectImage.pngPhotograph),
        ("decode-png-drawing", SubjectImage.pngDrawing),
        ("decode-webp-photo", SubjectImage.webpPhotograph),
    ]

    static let benchmarks = images.map { name, image in
        let peers = image.isJPEG ? "the C library, Pillow and pyvips" : "Pillow and pyvips"
        return Benchmark(name: name, summary: "\(image.file), against \(peers)") { session in
            try await run(name, image, session)
        }
    }

    private static func run(_ name: String, _ image: SubjectImage, _ session: Session) async throws -> [Row] {
        let path = try await image.path(session)
        var contest = Contest()
        await contest.enterOurs { try TintypeDecoding.contestant(image, path) }
        let plan = session.plan.limited(to: 11)
        if image.isJPEG {
            await contest.enter(TurboBench.name) {
                try await TurboBench.contestant(image, path, seconds: max(0.25, plan.sampleSeconds))
            }
            await contest.enter(CodecLoops.name("jpeg")) { try CodecLoops.decoder(image, path) }
        }
        for (peer, job) in [("Pillow", "pillow-decode"), ("pyvips", "vips-decode")] {
            await contest.enter(peer) {
                try await session.python().contestant(job: job, path: path) { width, height in
                    // The peers do not turn images upright, and no image here needs turning.
                    try Check.size(width, height, is: (image.width, image.height))
                }
            }
        }
        try await contest.measure(plan)
        return contest.rows(named: name, .rate(image.megapixels, "MP/s"))
            + contest.rows(named: name, .cpuRate(image.megapixels, "MP/s")) { peer in
                peer == TurboBench.name || peer == CodecLoops.name("jpeg")
                    ? [.times(image.isProgressive ? 0.95 : 1.05)] : [.times(1)]
            }
    }
}
