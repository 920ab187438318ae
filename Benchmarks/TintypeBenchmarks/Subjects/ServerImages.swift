// SPDX-License-Identifier: Apache-2.0

import Foundation

/// New images of the server: each request names a URL that nobody has requested before.
enum ServerImages {
    /// The formats of one row.
    struct Job: Sendable {
        let name: String
        let source: String
        let format: String
        /// How many times as many requests per second as thumbor the server must answer.
        let bar: Double
        var options: [String] = []
    }

    /// A server that takes part.
    private struct Side {
        let name: String
        let note: String
        let start: () async throws -> MeasuredServer
        let target: (_ source: String, _ format: String) -> String
    }

    static let jobs = [
        Job(name: "server-jpeg", source: "jpg", format: "jpeg", bar: 1.6),
        Job(name: "server-png", source: "png", format: "png", bar: 2.5),
        Job(name: "server-webp", source: "webp", format: "webp", bar: 1.8),
        Job(name: "server-jpeg-to-webp", source: "jpg", format: "webp", bar: 1.8),
        // Thumbor has no setting for the effort of WebP: it uses libwebp's default, 4.
        Job(
            name: "server-jpeg-to-webp-effort-2",
            source: "jpg",
            format: "webp",
            bar: 1.8,
            options: ["--webp-effort", "2"]
        ),
        // Thumbor stores nothing in these rows, so in one row Tintype stores nothing on disk either.
        Job(name: "server-jpeg-no-disk", source: "jpg", format: "jpeg", bar: 1.6, options: ["--cache-size", "0"]),
    ]

    static let benchmarks = jobs.map { job in
        Benchmark(
            name: job.name,
            summary: "2,040 pixels to fit 512x512, new URLs, 2 connections, against thumbor and nginx's image_filter"
        ) { session in
            try await run(job, session)
        }
    }

    /// Puts photographs of 2,040 pixels on the origin, and returns their paths and their URLs.
    static func sources(_ suffix: String, _ session: Session) async throws -> [(path: String, url: String)] {
        let origin = try await session.nginx()
        let photographs: [SubjectImage] = [
            .camera, .telephone,
            SubjectImage(file: "photos/Issue_266.jpg", width: 5760, height: 3840, isStripped: true),
            SubjectImage(file: "photos/Issue_525.jpg", width: 4032, height: 3024, isStripped: true),
        ]
        var sources: [(path: String, url: String)] = []
        for photograph in photographs {
            let path = try await session.photographs.source(photograph, suffix, session)
            let file = URL(fileURLWithPath: path)
            sources.append((path, try origin.serve(file.lastPathComponent, Data(contentsOf: file))))
        }
        return sources
    }

    private static func sides(_ job: Job, _ session: Session) async throws -> [Side] {
        let origin = try await session.nginx()
        return [
            Side(name: Contest.ours, note: job.options.isEmpty ? TintypeServe.note : job.options.joined(separator: " "))
            {
                try await TintypeServe.start(session, options: job.options).server
            } target: {
                TintypeServe.target($0, $1)
            },
            Side(name: Thumbor.name, note: Thumbor.note) {
                try await Thumbor.start(session)
            } target: {
                Thumbor.target($0, $1)
            },
            Side(name: "nginx image_filter", note: "two processes; it loads from the same origin") {
                guard job.source.hasPrefix(job.format.prefix(2)) || job.format == "jpeg" else {
                    throw Unavailable("it changes no formats")
                }
                return try await NginxServer.start(workers: 2, modules: [NginxServer.imageFilter], origin, session)
            } target: { source, _ in
                "/fit/" + source.dropFirst(origin.base.count)
            },
        ]
    }

    private static func run(_ job: Job, _ session: Session) async throws -> [Row] {
        let load = try await HTTPLoad(session)
        let sources = try await self.sources(job.source, session)
        let sides = try await self.sides(job, session)
        var servers: [String: MeasuredServer] = [:]
        var contest = Contest()
        for side in sides {
            await contest.enter(side.name) {
                let server = try await side.start()
                servers[side.name] = server
                let targets = sources.map { side.target($0.url + "?#", job.format) }
                // A connection for each request, so that thumbor's processes share them evenly.
                let requests = HTTPLoad.Requests(connections: 2, targets: targets, mode: .close)
                return load.contestant(requests, to: server, note: side.note)
            }
        }
        try await contest.measure(session.plan.coarse)
        let isThumbor = { (peer: String?) in peer == Thumbor.name }
        var rows =
            contest.rows(named: job.name, .rate(1, "requests/s")) { isThumbor($0) ? [.times(job.bar)] : [] }
            + contest.rows(named: job.name, .cpu(.milliseconds)) + contest.rows(named: job.name, .resident)
        var scores: [String: Summary] = [:]
        var notes: [String] = []
        for side in sides {
            guard let server = servers[side.name] else { continue }
            do {
                scores[side.name] = try await self.scores(of: side, server, job, sources, session)
            } catch {
                notes.append("\(side.name): \(error)")
            }
            await server.end()
        }
        rows += sides.dropFirst().map { side in
            let bar = isThumbor(side.name) ? scores[side.name].map { Bar.atLeast($0.median) } : nil
            return Row(
                name: job.name,
                metric: .plain("score", "SSIMULACRA2", lowerIsBetter: false),
                peer: side.name,
                ours: scores[Contest.ours],
                theirs: scores[side.name],
                bars: bar.map { [$0] } ?? [],
                notes: notes
            )
        }
        return rows
    }

    /// Compares results with full decodes that Lanczos3 resized.
    private static func scores(
        of side: Side,
        _ server: MeasuredServer,
        _ job: Job,
        _ sources: [(path: String, url: String)],
        _ session: Session
    ) async throws -> Summary {
        var scores: [Double] = []
        for source in sources.prefix(session.plan.rounds >= Plan.thorough.rounds ? 3 : 1) {
            let answer = try await server.get(String(side.target(source.url, job.format).dropFirst()))
            try Check.equal("the status", answer.status, 200)
            let file = session.folders.temporary.appendingPathComponent("answer-\(UUID()).\(job.format)")
            try answer.body.write(to: file)
            let comparison = try await session.python().ask(
                PythonWorker.Request(do: "compare", original: source.path, candidate: file.path)
            )
            try Check.equal("the longer side", max(comparison.width ?? 0, comparison.height ?? 0), 512)
            guard let score = comparison.score else { throw Unavailable("nothing was compared") }
            scores.append(score)
        }
        return Summary(scores)
    }
}
