// SPDX-License-Identifier: Apache-2.0

/// 12 megapixels of RGBA in memory to a smaller size in memory, on one thread.
enum Resizing {
    /// One size, and how samples are weighed.
    struct Job: Sendable {
        let name: String
        /// The width of the result, which determines its height.
        let side: Int
        let isLinear: Bool

        /// The size of the result.
        ///
        /// The image is 4,000 by 3,000.
        var result: (width: Int, height: Int) { (self.side, self.side * 3 / 4) }

        var options: PythonWorker.JobOptions { PythonWorker.JobOptions(side: self.side, linear: self.isLinear) }
    }

    static let size = (width: 4_000, height: 3_000)

    private static let jobs = [
        Job(name: "resize-rgba-400", side: 400, isLinear: false),
        Job(name: "resize-rgba-2000", side: 2_000, isLinear: false),
        Job(name: "resize-rgba-400-linear", side: 400, isLinear: true),
        Job(name: "resize-rgba-2000-linear", side: 2_000, isLinear: true),
    ]

    static let benchmarks = jobs.map { job in
        Benchmark(
            name: job.name,
            summary: "12 MP RGBA to \(job.side) px, Lanczos3\(job.isLinear ? ", in linear light" : "")"
        ) { session in
            try await run(job, session)
        }
    }

    private static func run(_ job: Job, _ session: Session) async throws -> [Row] {
        let path = try await session.photographs.translucent(session)
        var contest = Contest()
        await contest.enterOurs { try TintypeResizing.contestant(job, path) }
        // Pillow resizes in the curve of sRGB alone.
        for (peer, name) in [("pyvips", "vips-resize"), ("Pillow", "pillow-resize")]
        where !job.isLinear || peer == "pyvips" {
            await contest.enter(peer) {
                try await session.python().contestant(job: name, path: path, options: job.options) { width, height in
                    try Check.size(width, height, is: job.result)
                }
            }
        }
        try await contest.measure(session.plan.limited(to: 15))
        return contest.rows(named: job.name, .cpu(.milliseconds)) { _ in [.times(3)] }
            + contest.rows(named: job.name, .wall(.milliseconds))
    }
}
