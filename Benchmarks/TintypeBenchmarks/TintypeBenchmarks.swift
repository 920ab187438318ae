// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Measures Tintype and its peers in one session, and reports the rows that fall short.
@main
enum TintypeBenchmarks {
    /// Every benchmark, in the order in which they run.
    static let all =
        MemoryHits.benchmarks + HitRatios.benchmarks + DiskHits.benchmarks + DiskTier.benchmarks
        + MillionEntries.benchmarks + Downloads.benchmarks + LargeDownloads.benchmarks + ColdLoads.benchmarks
        + Decoding.benchmarks + JPEGShortcuts.benchmarks
        + Previews.benchmarks
        + Animations.benchmarks + Encoding.benchmarks + Lossless.benchmarks + Resizing.benchmarks
        + Thumbnails.benchmarks + SharedSizes.benchmarks + IdleLanes.benchmarks + LargeImages.benchmarks
        + Geometry.benchmarks + PixelOperations.benchmarks
        + Bombs.benchmarks
        + ServerImages.benchmarks + ServerHits.benchmarks + ServerLoad.benchmarks + ServerConnections.benchmarks
        + SharedHits.benchmarks

    static func main() async {
        OriginTrust.enter()
        do {
            try await self.run(Options(Array(CommandLine.arguments.dropFirst())))
        } catch let misuse as Options.Misuse {
            Console.note("\(misuse)\n\n\(Options.help)")
            exit(2)
        } catch {
            Console.note("failed: \(error)")
            exit(1)
        }
    }

    /// Away from the main actor, as a server's code would run.
    @concurrent
    private static func run(_ options: Options) async throws {
        if options.isHelp { return Console.show(Options.help) }
        if let job = options.job { return try await ChildJob.run(job) }
        let chosen = try self.chosen(options)
        if options.isList {
            for benchmark in chosen { Console.show("\(benchmark.name): \(benchmark.summary)") }
            return
        }
        // A worker that died is an error of its row, not the end of the harness.
        signal(SIGPIPE, SIG_IGN)
        if !Machine.isOptimised { Console.note("this is a debug build: its figures mean nothing") }
        let session = try Session(plan: options.plan)
        let run = await Run.measure(chosen, in: session)
        let path = options.json ?? session.folders.results.appendingPathComponent("latest.json").path
        try await run.report(options, session).write(to: path)
        await session.end()
        OriginTrust.leave()
        Console.show(run.conclusion + "\n\nWritten to \(path)")
    }

    private static func chosen(_ options: Options) throws -> [Benchmark] {
        guard let filter = options.filter else { return self.all }
        guard let pattern = try? Regex(filter) else {
            throw Options.Misuse(description: "\(filter) is no regular expression")
        }
        let chosen = self.all.filter { $0.name.firstMatch(of: pattern) != nil }
        guard !chosen.isEmpty else { throw Options.Misuse(description: "no benchmark matches \(filter); see --list") }
        return chosen
    }
}
