// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeTestSupport

/// Loads real photographs over HTTP from an embedded origin: cold, warm from disk, and from memory.
///
/// Prints the table of times, and shows the first image in the terminal.
@main
struct TintypeDemo {
    private static let photographs = ["flower.jpg", "kodak-3.png", "flower.webp"]
    private static let thumbnail = Resize.fit(width: 400, height: 400)
    /// The number of repetitions.
    ///
    /// The table shows the medians.
    private static let roundCount = 5
    /// The number of hits in one measurement, because a hit in memory is faster than reading the clock.
    private static let hitCount = 1_000

    static func main() async throws {
        let origin = try FaultyOrigin(try Self.responses())
        let requests = Self.photographs.map { ImageRequest(url: origin.url("/\($0)"), thumbnail: Self.thumbnail) }

        print("\nAn origin serves \(requests.count) photographs at \(origin.url("/")).")
        print("Each is loaded as a thumbnail of at most 400x400 pixels.\n")
        var rounds: [[Run]] = []
        for _ in 0..<Self.roundCount {
            let directory = try TemporaryDirectory()
            let cold = Self.makeLoader(directory)
            rounds.append([
                try await Run(name: "cold, over HTTP", requests: requests, loader: cold),
                // A new loader has nothing in memory, as after a restart.
                try await Run(name: "warm, from disk", requests: requests, loader: Self.makeLoader(directory)),
                try await Run(name: "again, from memory", requests: requests, loader: cold, count: Self.hitCount),
            ])
        }
        print(Table(columns: Self.photographs, runs: Run.medians(of: rounds)).text)
        print("Medians of \(Self.roundCount) rounds; in memory each time is the mean of \(Self.hitCount) calls.")
        let askedCount = Self.photographs.reduce(0) { $0 + origin.requestCount(for: "/\($1)") }
        print("The origin was asked \(askedCount) times, \(askedCount / Self.roundCount) in a round.\n")
        print(TerminalImage(rounds[0][0].images[0], columns: 60).text)
    }

    private static func responses() throws -> [String: FaultyResponse] {
        try Dictionary(
            uniqueKeysWithValues: self.photographs.map { ("/\($0)", .body(Array(try Fixtures.data($0)))) }
        )
    }

    private static func makeLoader(_ directory: TemporaryDirectory) -> LoaderActor {
        var configuration = LoaderActor.Configuration()
        configuration.disk?.directory = directory.url(of: "cache")
        return LoaderActor(configuration: configuration)
    }
}

/// The times of loading every photograph.
struct Run {
    let name: String
    private(set) var times: [Duration]
    let images: [Image]

    /// Loads each photograph `count` times, and records the mean time.
    init(name: String, requests: [ImageRequest], loader: LoaderActor, count: Int = 1) async throws {
        let clock = ContinuousClock()
        var times: [Duration] = []
        var images: [Image] = []
        for request in requests {
            let start = clock.now
            var image = try await loader.image(for: request)
            for _ in 1..<count { image = try await loader.image(for: request) }
            times.append(start.duration(to: clock.now) / count)
            images.append(image)
        }
        await loader.cache.waitForPendingStores()
        self.name = name
        self.times = times
        self.images = images
    }

    /// The runs of the first round with the median time of each photograph in all rounds.
    static func medians(of rounds: [[Run]]) -> [Run] {
        rounds[0].indices.map { run in
            var median = rounds[0][run]
            for photograph in median.times.indices {
                let times = rounds.map { $0[run].times[photograph] }.sorted()
                median.times[photograph] = times[times.count / 2]
            }
            return median
        }
    }
}
