// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Pixels in memory to encoded bytes in memory, on one thread.
enum Encoding {
    /// One image and its encoding.
    struct Job: Sendable {
        let name: String
        let image: SubjectImage
        /// The encoded format: `jpeg`, `webp` or `png`.
        let format: String

        /// JPEG is 4:2:0, WebP has method 4.
        static let quality = 80
        static let level = 6

        var options: PythonWorker.JobOptions {
            PythonWorker.JobOptions(format: self.format, quality: Self.quality, level: Self.level)
        }
    }

    private static let jobs = [
        Job(name: "encode-jpeg-12MP", image: .camera, format: "jpeg"),
        Job(name: "encode-jpeg-small", image: .pngOther, format: "jpeg"),
        Job(name: "encode-webp-photo", image: .pngOther, format: "webp"),
        Job(name: "encode-webp-large", image: .webpPhotograph, format: "webp"),
        Job(name: "encode-png-photo", image: .pngOther, format: "png"),
        Job(name: "encode-png-drawing", image: .pngDrawing, format: "png"),
    ]

    static let benchmarks = jobs.map { job in
        let peers = job.format == "png" ? "Pillow and pyvips" : "the C library, Pillow and pyvips"
        return Benchmark(name: job.name, summary: "\(job.image.file) to \(job.format), against \(peers)") {
            session in
            try await run(job, session)
        }
    }

    private static func run(_ job: Job, _ session: Session) async throws -> [Row] {
        let path = try await job.image.path(session)
        var contest = Contest()
        await contest.enterOurs { try TintypeEncoding.contestant(job, path) }
        if job.format != "png" {
            await contest.enter(CodecLoops.name(job.format)) { try CodecLoops.encoder(job, path) }
        }
        for (peer, name) in [("Pillow", "pillow-encode"), ("pyvips", "vips-encode")] {
            await contest.enter(peer) {
                try await session.python().contestant(job: name, path: path, options: job.options) { width, height in
                    try Check.size(width, height, is: (job.image.width, job.image.height))
                }
            }
        }
        try await contest.measure(session.plan.limited(to: 11))
        return contest.rows(named: job.name, .rate(job.image.megapixels, "MP/s"))
            + contest.rows(named: job.name, .cpuRate(job.image.megapixels, "MP/s")) { self.bars(job, $0) }
            + (try await self.sizes(job, path, session))
    }

    private static func bars(_ job: Job, _ peer: String?) -> [Bar] {
        switch (job.format, peer) {
        case ("png", "Pillow"): [.times(1)]
        case (_, "Pillow"), (_, CodecLoops.name(job.format)): [.times(0.95)]
        default: []
        }
    }

    /// Returns our number of bytes and each peer's.
    ///
    /// A PNG may have 1.02 times the bytes of Pillow's.
    private static func sizes(_ job: Job, _ path: String, _ session: Session) async throws -> [Row] {
        let ours = Double(try await TintypeEncoding.size(job, path))
        let metric = Metric.plain("size", "kB", lowerIsBetter: true)
        var rows: [Row] = []
        for (peer, name) in [("Pillow", "pillow-encode"), ("pyvips", "vips-encode")] {
            let answer = try? await session.python().ask(
                PythonWorker.Request(do: "run", job: name, path: path, count: 1, options: job.options)
            )
            let theirs = answer?.bytes.map(Double.init)
            rows.append(
                Row(
                    name: job.name,
                    metric: metric,
                    peer: peer,
                    ours: Summary([ours / 1000]),
                    theirs: theirs.map { Summary([$0 / 1000]) },
                    ratio: theirs.map { Summary([metric.advantage(of: ours, over: $0)]) },
                    bars: job.format == "png" && peer == "Pillow" ? [.times(1 / 1.02)] : []
                )
            )
        }
        return rows
    }
}
