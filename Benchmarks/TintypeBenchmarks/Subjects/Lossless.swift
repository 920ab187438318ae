// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeCoding
import TintypeImage

/// Encoded bytes to encoded bytes with the same coefficients, on one thread.
enum Lossless {
    /// One image, its transform, and jpegtran's options for the same transform.
    struct Job: Sendable {
        let name: String
        let image: SubjectImage
        let transform: JPEGTransform
        let options: [String]
        /// Whether TurboJPEG's interface can do the same.
        var isTurbo = false
    }

    private static let crop = PixelRectangle(x: 1_008, y: 800, width: 2_000, height: 1_500)
    private static let jobs = [
        Job(
            name: "lossless-rotate-12MP",
            image: .camera,
            transform: JPEGTransform(turn: .rotate90, coding: .standardTables),
            options: ["-rotate", "90", "-trim"],
            isTurbo: true
        ),
        Job(
            name: "lossless-rotate-optimize-12MP",
            image: .camera,
            transform: JPEGTransform(turn: .rotate90, coding: .optimizedTables),
            options: ["-rotate", "90", "-trim", "-optimize"]
        ),
        Job(
            name: "lossless-flip-12MP",
            image: .telephone,
            transform: JPEGTransform(turn: .flipHorizontal, coding: .standardTables),
            options: ["-flip", "horizontal", "-trim"]
        ),
        Job(
            name: "lossless-optimize-12MP",
            image: .camera,
            transform: JPEGTransform(coding: .optimizedTables),
            options: ["-optimize"]
        ),
        Job(
            name: "lossless-progressive-12MP",
            image: .camera,
            transform: JPEGTransform(coding: .progressive),
            options: ["-progressive"],
            isTurbo: true
        ),
        Job(
            name: "lossless-rotate-18MP-scans",
            image: .progressive,
            transform: JPEGTransform(turn: .rotate90),
            options: ["-rotate", "90", "-trim", "-progressive"],
            isTurbo: true
        ),
        Job(
            name: "lossless-crop-12MP",
            image: .camera,
            transform: JPEGTransform(crop: crop, coding: .standardTables),
            options: ["-crop", "2000x1500+1008+800"]
        ),
        Job(
            name: "lossless-strip-12MP",
            image: .camera,
            transform: JPEGTransform(metadata: .none),
            options: []
        ),
    ]

    static let benchmarks = jobs.map { job in
        Benchmark(name: job.name, summary: "\(job.image.file) without loss, against jpegtran and TurboJPEG") {
            session in
            try await run(job, session)
        }
    }

    private static func run(_ job: Job, _ session: Session) async throws -> [Row] {
        let path = try await job.image.path(session)
        var contest = Contest()
        await contest.enterOurs { try TintypeLossless.contestant(job, path) }
        await contest.enter(JPEGTran.name) { try JPEGTran.contestant(job.options, path) }
        if job.isTurbo {
            await contest.enter("TurboJPEG in C") {
                try CodecLoops.transformer(
                    turns: job.transform.turn != .none,
                    isProgressive: job.options.contains("-progressive"),
                    path
                )
            }
        }
        try await contest.measure(session.plan.limited(to: 11))
        return contest.rows(named: job.name, .cpuRate(job.image.megapixels, "MP/s")) { _ in [.times(1)] }
            + (try await [self.size(job, path)])
    }

    private static func size(_ job: Job, _ path: String) async throws -> Row {
        let metric = Metric.plain("size", "kB", lowerIsBetter: true)
        let ours = Double(try TintypeLossless.size(job, path))
        let theirs = (try? await JPEGTran.size(job.options, path)).map { Double($0) }
        return Row(
            name: job.name,
            metric: metric,
            peer: JPEGTran.name,
            ours: Summary([ours / 1_000]),
            theirs: theirs.map { Summary([$0 / 1_000]) },
            ratio: theirs.map { Summary([metric.advantage(of: ours, over: $0)]) },
            bars: [.times(1)]
        )
    }
}
