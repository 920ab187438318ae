import Foundation

/// One large picture on a loader whose other lanes have nothing to do, and on one whose lanes are all busy: with their help,
/// and without.
enum IdleLanes {
    /// What is made of a picture.
    struct Job: Sendable {
        let name: String
        let picture: Picture
        /// The longest side of the thumbnail; `nil` for the whole picture.
        let side: Int?

        /// The size of the result.
        var result: (width: Int, height: Int) {
            guard let side else { return (self.picture.width, self.picture.height) }
            let scale = Double(side) / Double(max(self.picture.width, self.picture.height))
            return (
                Int((Double(self.picture.width) * scale).rounded()),
                Int((Double(self.picture.height) * scale).rounded())
            )
        }
    }

    private static let rival = "tintype, one lane a picture"

    private static let jobs = [("422", Picture.camera), ("420", Picture.telephone)].flatMap { name, picture in
        [
            Job(name: "12MP-\(name)-whole", picture: picture, side: nil),
            Job(name: "12MP-\(name)-400", picture: picture, side: 400),
        ]
    }

    static let benchmarks = jobs.flatMap { job in
        [
            Benchmark(name: "idle-lanes-\(job.name)", summary: "a 12 MP JPEG with restart markers, one load at a time")
            {
                try await run(
                    "idle-lanes-\(job.name)",
                    job,
                    loadCount: 1,
                    [.wall(.milliseconds), .cpu(.milliseconds)],
                    $0
                )
            },
            Benchmark(
                name: "busy-lanes-\(job.name)",
                summary: "the same, twice as many loads at once as there are lanes"
            ) {
                let count = 2 * ProcessInfo.processInfo.activeProcessorCount
                return try await run(
                    "busy-lanes-\(job.name)",
                    job,
                    loadCount: count,
                    [.cpu(.milliseconds), .wall(.milliseconds)],
                    $0
                )
            },
        ]
    }

    private static func run(
        _ name: String,
        _ job: Job,
        loadCount: Int,
        _ metrics: [Metric],
        _ session: Session
    ) async throws -> [Row] {
        let path = try await session.photographs.restarting(job.picture, session)
        var contest = Contest()
        await contest.enterOurs { TintypeIdleLanes.contestant(job, path, loadCount: loadCount, usesIdleLanes: true) }
        await contest.enter(Self.rival) {
            TintypeIdleLanes.contestant(job, path, loadCount: loadCount, usesIdleLanes: false)
        }
        try await contest.measure(session.plan)
        return metrics.flatMap { metric in
            contest.rows(named: name, metric) { _ in loadCount > 1 ? [.times(0.97)] : [] }
        }
    }
}
