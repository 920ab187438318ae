import FoundationEssentials
import TestSupport
import Tintype

/// Loads real photographs over HTTP from an embedded origin: cold, warm from disk, and from memory.
///
/// Prints the table of times and shows the first picture in the terminal.
@main
struct TintypeDemo {
    private static let photographs = ["flower.jpg", "kodak-3.png", "flower.webp"]
    private static let thumbnail = Resize.fit(width: 400, height: 400)

    static func main() async throws {
        let origin = try FaultyOrigin(try Self.responses())
        let directory = try TemporaryDirectory()
        let requests = Self.photographs.map { ImageRequest(url: origin.url("/\($0)"), thumbnail: Self.thumbnail) }

        print("\nAn origin serves \(requests.count) photographs at \(origin.url("/")).")
        print("Each is loaded as a thumbnail of at most 400x400 pixels.\n")
        let cold = Self.makeLoader(directory)
        let rows = [
            try await Run(name: "cold, over HTTP", requests: requests, loader: cold),
            // A new loader has nothing in memory, as after a restart.
            try await Run(name: "warm, from disk", requests: requests, loader: Self.makeLoader(directory)),
            try await Run(name: "again, from memory", requests: requests, loader: cold),
        ]
        print(Table(columns: Self.photographs, runs: rows).text)
        print("The origin was asked \(Self.photographs.reduce(0) { $0 + origin.requestCount(for: "/\($1)") }) times.\n")
        print(TerminalPicture(rows[0].images[0], columns: 60).text)
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

/// The times of loading every photograph once.
struct Run {
    let name: String
    let times: [Duration]
    let images: [Image]

    init(name: String, requests: [ImageRequest], loader: LoaderActor) async throws {
        let clock = ContinuousClock()
        var times: [Duration] = []
        var images: [Image] = []
        for request in requests {
            let start = clock.now
            images.append(try await loader.image(for: request))
            times.append(start.duration(to: clock.now))
        }
        await loader.cache.waitForPendingStores()
        self.name = name
        self.times = times
        self.images = images
    }
}
