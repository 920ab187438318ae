// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Converts a 12-megapixel JPEG in memory to an encoded image of 400 or 200 pixels, on one thread.
enum Thumbnails {
    /// One image and its thumbnail.
    struct Job: Sendable {
        let name: String
        let image: SubjectImage
        /// The encoded format: `jpeg`, `webp` or `png`.
        let format: String

        /// The longest side of the result.
        var side = 400
        static let quality = 80

        /// The size of the result.
        var result: (width: Int, height: Int) {
            let scale = Double(self.side) / Double(max(self.image.width, self.image.height))
            let sides = [self.image.width, self.image.height].map { Int((Double($0) * scale).rounded()) }
            return (sides[0], sides[1])
        }

        /// The same job with another format.
        func with(format: String) -> Job {
            Job(name: self.name, image: self.image, format: format, side: self.side)
        }

        var options: PythonWorker.JobOptions {
            PythonWorker.JobOptions(side: self.side, format: self.format, quality: Self.quality)
        }
    }

    /// The peer that bars are set against.
    static let rival = "pyvips"

    static let jobs = ["jpeg", "webp"].flatMap { format in
        [("422", SubjectImage.camera), ("420", SubjectImage.telephone)].map { name, image in
            Job(name: "thumbnail-\(format)-12MP-\(name)", image: image, format: format)
        }
    }

    /// An image whose rows are resampled during the decode.
    private static let largePNG = Job(
        name: "png-96mp-400",
        image: SubjectImage(file: "diagram-12000x8000.png", width: 12_000, height: 8_000),
        format: "jpeg"
    )

    /// A quarter of the size is decoded for the first, an eighth for the second.
    private static let progressive = [400, 200].map { side in
        Job(
            name: "thumbnail-jpeg-12MP-scans-\(side)",
            image: SubjectImage(file: "photograph-4272x2848-progressive.jpg", width: 4272, height: 2848),
            format: "jpeg",
            side: side
        )
    }

    static let benchmarks =
        jobs.flatMap { job in benchmarks(job) { try await job.image.path($0) } }
        + progressive.flatMap { job in benchmarks(job) { try await $0.photographs.progressive($0) } }
        + [
            Benchmark(name: largePNG.name, summary: "96 MP PNG to 400 px jpeg: processor time, wall time") { session in
                try await times(largePNG, try await session.photographs.enormousPNG(session), session, rounds: 7)
            },
            Benchmark(
                name: "photographs-closeness",
                summary: "SSIM and SSIMULACRA2 of thumbnails of the corpus' photographs to full decode + Lanczos3",
                run: photographs
            ),
        ]

    private static func benchmarks(
        _ job: Job,
        _ path: @escaping @Sendable (Session) async throws -> String
    ) -> [Benchmark] {
        [
            Benchmark(
                name: job.name,
                summary: "12 MP JPEG to \(job.side) px \(job.format): processor time, wall time"
            ) { session in
                try await times(job, try await path(session), session, rounds: 15)
            },
            Benchmark(
                name: job.name + "-closeness",
                summary: "SSIM of the output, and of the pixels before encoding, to full decode + Lanczos3"
            ) { session in
                try await closeness(job, try await path(session), session)
            },
        ]
    }

    /// The pixels of each photograph's thumbnail.
    private static func photographs(_ session: Session) async throws -> [Row] {
        var rows: [Row] = []
        for image in SubjectImage.photographs {
            let name = URL(fileURLWithPath: image.file).deletingPathExtension().lastPathComponent
            let job = Job(name: "closeness-\(name)", image: image, format: "png")
            rows += try await Closeness(job, try await image.path(session), session).rows(named: job.name, "pixel")
        }
        return rows
    }

    private static func times(
        _ job: Job,
        _ path: String,
        _ session: Session,
        rounds: Int
    ) async throws -> [Row] {
        var contest = Contest()
        await contest.enterOurs { TintypeThumbnails.contestant(job, path) }
        for (peer, name) in [(Self.rival, "vips-thumbnail"), ("Pillow", "pillow-thumbnail")] {
            await contest.enter(peer) {
                try await session.python().contestant(job: name, path: path, options: job.options) { width, height in
                    try Check.size(width, height, is: job.result)
                }
            }
        }
        try await contest.measure(session.plan.limited(to: rounds))
        return contest.rows(named: job.name, .cpu(.milliseconds)) { $0 == Self.rival ? [.times(1)] : [] }
            + contest.rows(named: job.name, .wall(.milliseconds))
    }

    /// The encoded output, then the pixels alone, as a PNG.
    private static func closeness(_ job: Job, _ path: String, _ session: Session) async throws -> [Row] {
        var rows: [Row] = []
        for (job, what) in [(job, "ssim"), (job.with(format: "png"), "pixel")] {
            rows += try await Closeness(job, path, session).rows(named: job.name + "-closeness", what)
        }
        return rows
    }
}
