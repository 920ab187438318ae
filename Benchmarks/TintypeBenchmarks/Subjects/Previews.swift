/// What previews cost: a progressive JPEG that arrives in pieces, against its decode in one go.
enum Previews {
    private static let name = "preview-jpeg-18MP-scans"

    static let benchmarks = [
        Benchmark(name: name, summary: "\(Picture.progressive.file) in 20 pieces, against one decode") { session in
            let path = try await Picture.progressive.path(session)
            var contest = Contest()
            await contest.enterOurs { try TintypePreviews.contestant(.progressive, path, pieces: 20) }
            await contest.enter("one decode") { try TintypeDecoding.contestant(.progressive, path) }
            try await contest.measure(session.plan.limited(to: 7))
            // At most 2.5 times the cost: at least 0.4 of the rate.
            return contest.rows(named: name, .cpuRate(Picture.progressive.megapixels, "MP/s")) { _ in [.times(0.4)] }
        }
    ]
}
