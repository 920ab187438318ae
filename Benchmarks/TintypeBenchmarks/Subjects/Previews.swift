// SPDX-License-Identifier: Apache-2.0

/// Measures the cost of previews: a progressive JPEG that arrives in pieces, compared with a decode of the whole file,
/// and loads with and without previews.
enum Previews {
    static let benchmarks = [scans] + loads.map { load($0.kind, $0.image) }

    private static let scans: Benchmark = {
        let name = "preview-jpeg-18MP-scans"
        let summary = "\(SubjectImage.progressive.file) in 20 pieces, against one decode"
        return Benchmark(name: name, summary: summary) { session in
            let path = try await SubjectImage.progressive.path(session)
            var contest = Contest()
            await contest.enterOurs { try TintypePreviews.contestant(.progressive, path, pieces: 20) }
            await contest.enter("one decode") { try TintypeDecoding.contestant(.progressive, path) }
            try await contest.measure(session.plan.limited(to: 7))
            // At most 1.5 times the cost.
            let bars: [Bar] = [.times(0.66)]
            return contest.rows(named: name, .cpuRate(SubjectImage.progressive.megapixels, "MP/s")) { _ in bars }
        }
    }()

    private static let loads: [(kind: String, image: SubjectImage)] = [
        ("JPEG", .camera), ("JPEG-scans", .progressive), ("PNG", .pngPhotograph), ("WebP", .webpPhotograph),
    ]

    /// A load with previews, whose own cost is at most one and a half times that of the decode, and one without.
    private static func load(_ kind: String, _ image: SubjectImage) -> Benchmark {
        let name = "preview-load-\(kind)"
        let summary = "loads of \(image.file) with previews, against loads without"
        return Benchmark(name: name, summary: summary) { session in
            let target = try await TintypeColdLoads.target(image, session)
            var contest = Contest()
            await contest.enterOurs { TintypeColdLoads.loader(target, showsPreviews: true, width: 1) }
            await contest.enter("without previews") { TintypeColdLoads.loader(target, width: 1) }
            try await contest.measure(session.plan.limited(to: 7))
            return contest.rows(named: name, .cpu(.milliseconds)) { _ in [.times(0.4)] }
        }
    }
}
