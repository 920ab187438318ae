import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import TintypeConcurrency

@testable import Tintype

/// Images of one source that are requested at once share what is the same for them.
@Suite(.waiting, .timeLimit(.minutes(5))) struct SharedDecodeTests {
    /// Counts the decodes of another coder, and holds them back.
    private struct Counting: ImageCoder {
        let base: any ImageCoder
        let decodes: DecodeCounter
        let latch: Latch

        var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
        var encodableFormats: Set<ImageFormat> { [] }

        func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
            CountedImage(base: try self.base.open(data, limits: limits), decodes: self.decodes, latch: self.latch)
        }

        func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
    }

    /// Rows count like images: a decode that is streamed is a decode.
    private struct CountedImage: EncodedImage {
        let base: any EncodedImage
        let decodes: DecodeCounter
        let latch: Latch

        var header: ImageHeader { self.base.header }
        var givesRows: Bool { self.base.givesRows }

        func decode(options: DecodeOptions) throws -> DecodedImage {
            self.decodes.increment()
            self.latch.wait()
            return try self.base.decode(options: options)
        }

        func decodedLayout(options: DecodeOptions) throws -> PixelLayout {
            try self.base.decodedLayout(options: options)
        }

        func byteCount(for kind: DecodeKind, options: DecodeOptions) -> Int {
            self.base.byteCount(for: kind, options: options)
        }

        func withRows<Result>(
            options: DecodeOptions,
            _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
        ) throws -> Result? {
            self.decodes.increment()
            self.latch.wait()
            return try self.base.withRows(options: options, body)
        }
    }

    /// A file of as many pixels as a test wants, all of one colour, whose rows can be streamed.
    private struct FlatCoder: ImageCoder {
        let width: Int
        let height: Int

        var decodableFormats: Set<ImageFormat> { [.jpeg] }
        var encodableFormats: Set<ImageFormat> { [] }

        func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
            FlatImage(header: ImageHeader(format: .jpeg, pixelWidth: self.width, pixelHeight: self.height))
        }

        func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
    }

    private struct FlatImage: EncodedImage {
        let header: ImageHeader
        var givesRows: Bool { true }

        func decode(options: DecodeOptions) throws -> DecodedImage {
            DecodedImage(Image(pixels: try PixelBuffer(self.decodedLayout(options: options)) { _ in }))
        }

        func withRows<Result>(
            options: DecodeOptions,
            _ body: (any RowSource, _ coveredWidth: Double, _ coveredHeight: Double) throws -> Result
        ) throws -> Result? {
            let rows = FlatRows(layout: try self.decodedLayout(options: options))
            return try body(rows, Double(self.header.pixelWidth), Double(self.header.pixelHeight))
        }
    }

    private final class FlatRows: RowSource {
        let layout: PixelLayout

        init(layout: PixelLayout) {
            self.layout = layout
        }

        func readRow(into row: UnsafeMutableRawBufferPointer) throws {
            row.initializeMemory(as: UInt8.self, repeating: 0)
        }
    }

    /// Inverts the samples, or halves them, and counts that.
    private struct Step: ImageTransformer {
        let key: String
        let counter: DecodeCounter

        func transform(_ image: Image) throws -> Image {
            self.counter.increment()
            let pixels = image.pixels
            return image.replacingPixels(
                try .make(pixels.format, width: image.width, height: image.height) {
                    let sample = pixels.sample($0, $1, $2)
                    return UInt8(self.key == "a" ? 255 - sample : sample / 2)
                },
                orientation: .up
            )
        }
    }

    private let decodes = DecodeCounter()
    private let transforms = DecodeCounter()

    private var a: ImageTransform { .custom(Step(key: "a", counter: self.transforms)) }
    private var b: ImageTransform { .custom(Step(key: "b", counter: self.transforms)) }
    private var c: ImageTransform { .custom(Step(key: "c", counter: self.transforms)) }

    /// The images of requests that get their bytes together; all are in the hands of the decoder before it begins.
    private func images(
        of body: Data,
        by coder: any ImageCoder,
        waiting: Int,
        memory: Int? = nil,
        _ requests: [(inout ImageRequest) -> Void]
    ) async throws -> [Image] {
        let (gate, latch, origin) = (Gate(), Latch(), ScriptedOrigin([:]))
        origin.script("/a", .held(by: gate, body: Array(body)))
        let counting = Counting(base: coder, decodes: self.decodes, latch: latch)
        let loader = try LoaderFixture(origin: origin).makeLoader {
            $0.coders = CoderRegistry(coders: [counting])
            $0.disk = nil
            // Decodes that are held leave a lane for the headers.
            $0.laneCount = requests.count + 1
            if let memory { $0.decodingMemory = memory }
        }
        var images: [Int: Image] = [:]
        try await withThrowingTaskGroup(of: (Int, Image).self) { group in
            for (index, change) in requests.enumerated() {
                var request = ImageRequest(url: origin.url("/a"))
                change(&request)
                group.addTask { [request] in (index, try await loader.image(for: request)) }
            }
            await until { await loader.bytesWaiterCount == requests.count }
            await gate.open()
            await until { await loader.decodeWaiterCount == waiting }
            latch.open()
            for try await (index, image) in group { images[index] = image }
        }
        #expect(origin.requestCount(for: "/a") == 1)
        return requests.indices.compactMap { images[$0] }
    }

    /// The image of one request alone.
    private func image(
        of body: Data,
        by coder: any ImageCoder,
        _ change: (inout ImageRequest) -> Void
    ) async throws -> Image {
        let origin = ScriptedOrigin(["/a": .body(Array(body))])
        let loader = try LoaderFixture(origin: origin).makeLoader { $0.coders = CoderRegistry(coders: [coder]) }
        var request = ImageRequest(url: origin.url("/a"))
        change(&request)
        return try await loader.image(for: request)
    }

    private static func meanDifference(_ image: Image, _ other: Image) -> Double {
        let sum = zip(image.pixels.samples, other.pixels.samples).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
        return Double(sum) / Double(image.pixels.samples.count)
    }

    /// Alone they take an eighth, a quarter and a half of a JPEG, and a scale each of a WebP.
    @Test(arguments: ["flower.jpg", "flower.webp"])
    func `ten sizes share one decode, and are no further from the whole image than each alone`(
        name: String
    ) async throws {
        let body = try Fixtures.data(name)
        let coder: any ImageCoder = name == "flower.jpg" ? JPEGCoder() : WebPCoder()
        let widths = Array(stride(from: 60, to: name == "flower.jpg" ? 560 : 260, by: name == "flower.jpg" ? 50 : 20))
        let images = try await self.images(
            of: body,
            by: coder,
            waiting: widths.count,
            widths.map { width in { $0.thumbnail = .fit(width: width, height: width) } }
        )
        // A plan that is made after the first division may take a decode of its own.
        #expect(self.decodes.count <= 4)
        let whole = try ImageDecoder(body, registry: CoderRegistry(coders: [coder])).decode()
        for (width, image) in zip(widths, images) {
            #expect(image.width == width)
            let alone = try await self.image(of: body, by: coder) { $0.thumbnail = .fit(width: width, height: width) }
            let best = try whole.resized(.fit(width: width, height: width))
            #expect(Self.meanDifference(image, best) <= Self.meanDifference(alone, best) + 0.01, "\(width)")
        }
    }

    @Test func `many small sizes are not made of a large image if another decode costs less`() async throws {
        // 1,000 pixels need the whole image, and each of the others is made of 54,000 pixels instead of 3.4 million.
        let body = try Fixtures.data("flower.jpg")
        let sizes = [1_000] + Array(60..<70)
        let images = try await self.images(
            of: body,
            by: JPEGCoder(),
            waiting: sizes.count,
            sizes.map { width in { $0.thumbnail = .fit(width: width, height: width) } }
        )
        #expect(images.map(\.width) == sizes)
        #expect(self.decodes.count == 2)
        let alone = try await self.image(of: body, by: JPEGCoder()) { $0.thumbnail = .fit(width: 64, height: 64) }
        #expect(alone.pixels.samples == images[5].pixels.samples)
    }

    @Test func `each decode streams if there is no memory for a whole image`() async throws {
        // 35 MiB of pixels.
        let coder = FlatCoder(width: 3_500, height: 3_500)
        let sizes: [(inout ImageRequest) -> Void] = [10, 20, 30].map { width in
            { $0.thumbnail = .fit(width: width, height: width) }
        }
        let body = Data(try Fixtures.data("camera.jpg"))
        _ = try await self.images(of: body, by: coder, waiting: 0, memory: 64 << 20, sizes)
        #expect(self.decodes.count == 3)
    }

    @Test func `transforms that begin alike are shared`() async throws {
        let body = try Fixtures.data("camera.png")
        let pipelines: [TransformPipeline] = [[self.a], [self.a, self.b], [self.a, self.b, self.c], [self.b], []]
        let images = try await self.images(
            of: body,
            by: PNGCoder(),
            waiting: pipelines.count,
            pipelines.map { pipeline in { $0.transforms = pipeline } }
        )
        // Alone they take 7. At best a, b after a, c after b, and b: plans that come late share less.
        #expect(self.decodes.count == 1)
        #expect((4..<7).contains(self.transforms.count))
        for (pipeline, image) in zip(pipelines, images) {
            let alone = try await self.image(of: body, by: PNGCoder()) { $0.transforms = pipeline }
            #expect(alone.pixels.samples == image.pixels.samples)
        }
    }
}
