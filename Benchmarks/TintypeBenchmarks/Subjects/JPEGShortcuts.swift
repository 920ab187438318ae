// SPDX-License-Identifier: Apache-2.0

import TintypeCoding

/// JPEGs to a part of their size, on one thread: with the ways around libjpeg's own code, and without.
enum JPEGShortcuts {
    /// An image, and the divisors of its sides.
    private struct Job {
        let name: String
        let image: SubjectImage
        let divisors: [Int]
        /// The bars by divisor: against Tintype without the shortcuts, or against the bare library if that is the
        /// comparison.
        let bars: [Int: Double]
        let path: @Sendable (Session) async throws -> String
    }

    /// The side without the shortcuts.
    private static let library = "tintype with libjpeg alone"

    private static let jobs = [
        Job(name: "12MP-422", image: .camera, divisors: [1, 2, 4, 8], bars: [:]) {
            try await SubjectImage.camera.path($0)
        },
        Job(name: "12MP-420", image: .telephone, divisors: [1, 2, 4, 8], bars: [:]) {
            try await SubjectImage.telephone.path($0)
        },
        Job(name: "18MP-scans-444", image: .progressive, divisors: [8], bars: [8: 1.5]) {
            try await SubjectImage.progressive.path($0)
        },
        Job(name: "12MP-scans-420", image: .camera, divisors: [4, 8], bars: [8: 1.5]) {
            try await $0.photographs.progressive($0)
        },
        // Too small for the entropy decoder.
        Job(name: "50kB", image: .small, divisors: [1, 2, 8], bars: [1: 0.98, 2: 0.98, 8: 0.98]) {
            try await $0.photographs.small($0)
        },
    ]

    static let benchmarks = jobs.flatMap { job in
        job.divisors.map { divisor in
            let name = "jpeg-\(job.name)-\(divisor == 1 ? "whole" : "1/\(divisor)")"
            return Benchmark(name: name, summary: "a JPEG of \(job.name), against libjpeg alone, also in C") {
                session in
                try await run(name, job, divisor, session)
            }
        }
    }

    private static func run(_ name: String, _ job: Job, _ divisor: Int, _ session: Session) async throws -> [Row] {
        let path = try await job.path(session)
        var contest = Contest()
        await contest.enterOurs {
            try TintypeDecoding.contestant(job.image, path, divisor: divisor, shortcuts: .all)
        }
        await contest.enter(Self.library) {
            try TintypeDecoding.contestant(job.image, path, divisor: divisor, shortcuts: [])
        }
        await contest.enter(CodecLoops.name("jpeg")) {
            try CodecLoops.decoder(job.image, path, divisor: divisor)
        }
        try await contest.measure(session.plan.limited(to: 15))
        let rows = contest.rows(named: name, .cpu(.milliseconds)) { peer in
            peer == Self.library ? job.bars[divisor].map { [.times($0)] } ?? [] : []
        }
        return rows + contest.rows(named: name, .wall(.milliseconds))
    }
}
