// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Decodes every frame of a GIF as displayed, from bytes in memory to pixels in memory, on one thread.
enum Animations {
    /// One GIF and its properties.
    struct Job: Sendable {
        let name: String
        /// The file's path in the corpus, or `nil` for the generated file.
        let file: String?
        let width: Int
        let height: Int
        let frames: Int

        var megapixels: Double { Double(self.width * self.height * self.frames) / 1e6 }
    }

    private static let jobs = [
        Job(name: "gif-still", file: "gif/test.gif", width: 1280, height: 1067, frames: 1),
        Job(name: "gif-interlaced", file: "gif/interlaced.gif", width: 540, height: 330, frames: 1),
        Job(name: "gif-42-frames", file: "gif/iss634.gif", width: 245, height: 245, frames: 42),
        Job(name: "gif-24-large-frames", file: nil, width: 640, height: 480, frames: 24),
    ]

    static let benchmarks = jobs.map { job in
        let what = job.file ?? "24 frames of 640x480 made from a photograph"
        return Benchmark(name: job.name, summary: "\(what): all frames, against Pillow") { session in
            try await run(job, session)
        }
    }

    private static func run(_ job: Job, _ session: Session) async throws -> [Row] {
        let photographs = session.photographs
        let path =
            if let file = job.file { try photographs.exactly(file) } else { try await photographs.animation(session) }
        var contest = Contest()
        await contest.enterOurs { try TintypeAnimations.contestant(job, path) }
        await contest.enter("Pillow") {
            let options = PythonWorker.JobOptions(frames: job.frames)
            return try await session.python().contestant(job: "pillow-frames", path: path, options: options) {
                try Check.size($0, $1, is: (job.width, job.height))
            }
        }
        try await contest.measure(session.plan.limited(to: 11))
        return contest.rows(named: job.name, .rate(job.megapixels, "MP/s"))
            + contest.rows(named: job.name, .cpuRate(job.megapixels, "MP/s")) { _ in [.times(2)] }
    }
}
