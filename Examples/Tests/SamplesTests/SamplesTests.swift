// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Samples
import Synchronization
import Testing
import Tintype
import TintypeTestSupport

@Suite struct SamplesTests {
    @Test func `a loader reads a format, a scheme and a transform of the program's own, and tells its observer`()
        async throws
    {
        let folder = try TemporaryDirectory()
        // Two pixels: red and blue.
        let ppm = Data("P6\n2 1\n255\n".utf8) + [255, 0, 0, 0, 0, 255]
        try ppm.write(to: folder.url(of: "two.ppm"))
        let lines = Lines()
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        configuration.coders.register(PPMCoder())
        configuration.fetcher = FolderFetcher(URL(filePath: folder.path))
        configuration.observers = [SlowLoadLog(over: .zero) { lines.append($0) }]
        let loader = LoaderActor(configuration: configuration)
        let url = try #require(URL(string: "folder:/two.ppm"))
        let image = try await loader.image(for: ImageRequest(url: url, transforms: [.custom(Mirror())]))
        #expect(image.width == 2)
        let samples = image.pixels.withBytes { bytes in
            (0..<6).map { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
        }
        #expect(samples == [255, 0, 0, 255, 0, 0])
        #expect(try await PPMCoder().encode(loader.image(for: url), as: .ppm, options: EncodeOptions()) == ppm)
        let missing = try #require(URL(string: "folder:/none.ppm"))
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: missing) }
        #expect(error?.status == 404)
        await loader.shutdown()
        #expect(lines.all.contains { $0.contains("two.ppm") })
    }

    @Test(arguments: [
        "P6\n2 2\n255\n12345", "P6\n9223372036854775807 9 255 ", "P6\n-1 2\n255\n", "P5\n1 1\n255\n1", "P6",
    ])
    func `a damaged PPM is an error`(text: String) {
        #expect(throws: CodingError.self) { try PPMCoder().open(Data(text.utf8)) }
    }
}

private final class Lines: Sendable {
    private let state = Mutex<[String]>([])
    var all: [String] { self.state.withLock { $0 } }
    func append(_ line: String) { self.state.withLock { $0.append(line) } }
}
