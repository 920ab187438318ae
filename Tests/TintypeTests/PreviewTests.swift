import FoundationEssentials
import TestSupport
import Testing
import Tintype

@Suite(.timeLimit(.minutes(1))) struct PreviewTests {
    let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture()
    }

    /// A loader with the library's own coders: the fixture's counting ones make no previews.
    private func makeLoader() -> LoaderActor {
        self.fixture.makeLoader { $0.coders = CoderRegistry() }
    }

    private static func progressiveJPEG() throws -> [UInt8] {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 320, height: 240)
        let options = EncodeOptions(isProgressive: true)
        return Array(try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: options))
    }

    /// A response that sends half of the body, waits for the door, then sends the rest.
    private static func halves(_ body: [UInt8], _ latch: Latch) -> FaultyResponse {
        let middle = body.count * 3 / 4
        return FaultyResponse([
            FaultyResponse.head(200, [("Content-Length", "\(body.count)")]), .send(Array(body[..<middle])),
            .wait(latch), .send(Array(body[middle...])),
        ])
    }

    @Test func aPictureIsShownBeforeItsLastByte() async throws {
        let latch = Latch()
        let origin = try FaultyOrigin(["/a": Self.halves(try Self.progressiveJPEG(), latch)])
        let request = ImageRequest(url: origin.url("/a"), options: [.previews])
        var previews: [Image] = []
        var end: ImageResponse?
        for try await event in self.makeLoader().events(for: request) {
            switch event {
            case .progress, .cached: break
            case .preview(let image):
                previews.append(image)
                latch.open()
            case .finished(let response): end = response
            }
        }
        #expect(!previews.isEmpty)
        #expect(previews.allSatisfy { ($0.width, $0.height) == (320, 240) })
        #expect(end?.source == .network)
    }

    @Test func noPreviewComesUnlessItIsAskedFor() async throws {
        let origin = try FaultyOrigin(["/a": .body(try Self.progressiveJPEG())])
        for try await event in self.makeLoader().events(for: ImageRequest(url: origin.url("/a"))) {
            if case .preview = event { Issue.record("no preview was asked for") }
        }
    }

    @Test func damagedBytesAreAnErrorOfTheLoadAndNotOfThePreview() async throws {
        let body = try Self.progressiveJPEG()
        let origin = try FaultyOrigin(["/a": .body(Array(body[..<(body.count / 2)]))])
        let request = ImageRequest(url: origin.url("/a"), options: [.previews])
        let error = await #expect(throws: LoadError.self) {
            for try await _ in self.makeLoader().events(for: request) {}
        }
        #expect(error?.code == .truncated, "\(String(describing: error))")
    }
}
