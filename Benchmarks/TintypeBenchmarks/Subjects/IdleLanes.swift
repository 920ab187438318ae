// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Loads one large image with the help of idle lanes, and without help because all other lanes are busy.
enum IdleLanes {
    /// An image and the requested result.
    struct Job: Sendable {
        let name: String
        let image: SubjectImage
        /// The longest side of the thumbnail, or `nil` for the whole image.
        let side: Int?
        let path: @Sendable (Session) async throws -> String

        /// The size of the result.
        var result: (width: Int, height: Int) {
            guard let side else { return (self.image.width, self.image.height) }
            let scale = Double(side) / Double(max(self.image.width, self.image.height))
            return (
                Int((Double(self.image.width) * scale).rounded()),
                Int((Double(self.image.height) * scale).rounded())
            )
        }
    }

    private static let rival = "tintype, one lane an image"

    private static let jobs =
        [
            ("12MP-422", SubjectImage.camera), ("12MP-420", SubjectImage.telephone),
            ("4MP-422", SubjectImage(file: "photos/Canon_PowerShot_A85.jpg", width: 1_704, height: 2_272)),
        ].flatMap { name, image in
            [("whole", nil), ("400", 400)].map { size, side in
                Job(name: "jpeg-\(name)-\(size)", image: image, side: side) {
                    try await $0.photographs.restarting(image, $0)
                }
            }
        } + [
            Job(name: "png-12MP-400", image: SubjectImage(file: "", width: 4_000, height: 3_000), side: 400) {
                try await $0.photographs.translucent($0)
            },
            Job(name: "png-96MP-400", image: SubjectImage(file: "", width: 12_000, height: 8_000), side: 400) {
                try await $0.photographs.enormousPNG($0)
            },
        ]

    static let benchmarks = jobs.flatMap { job in
        [
            Benchmark(name: "idle-lanes-\(job.name)", summary: "a large image, one load at a time") {
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
        let path = try await job.path(session)
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
