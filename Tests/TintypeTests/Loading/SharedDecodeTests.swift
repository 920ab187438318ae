// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Simultaneous requests for images of one source share their common work.
@Suite(.waiting, .timeLimit(.minutes(5))) struct SharedDecodeTests {
    /// A coder that counts and holds the headers and the decodes of another coder.
    private struct Counting: ImageCoder {
        let base: any ImageCoder
        let decodes: DecodeCounter
        let latch: Latch
        var headers = DecodeCounter()
        var headerLatch: Latch?

        var decodableFormats: Set<ImageFormat> { self.base.decodableFormats }
        var encodableFormats: Set<ImageFormat> { [] }

        func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
            self.headers.increment()
            self.headerLatch?.wait()
            let image = try self.base.open(data, limits: limits)
            return CountedImage(base: image, decodes: self.decodes, latch: self.latch)
        }

        func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
    }

    /// An encoded image that counts a streamed decode like a whole one.
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

    /// A coder of images in one colour and any size, whose rows can be streamed.
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

    /// A transformer that inverts or halves the samples, and counts its calls.
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
    private let headers = DecodeCounter()

    private var a: ImageTransform { .custom(Step(key: "a", counter: self.transforms)) }
    private var b: ImageTransform { .custom(Step(key: "b", counter: self.transforms)) }
    private var c: ImageTransform { .custom(Step(key: "c", counter: self.transforms)) }

    /// Loads that get their bytes at once, from a loader whose decodes are held.
    private struct Loads {
        let loader: LoaderActor
        let tasks: [Task<Image, any Error>]
        /// The latch that holds the decodes.
        let latch: Latch
        let origin: ScriptedOrigin

        /// Returns the images.
        ///
        /// The decodes begin when `waiting` loads wait for a shared one.
        func images(waiting: Int) async throws -> [Image] {
            await until { await self.loader.decodeWaiterCount == waiting }
            self.latch.open()
            var images: [Image] = []
            for task in self.tasks { images.append(try await task.value) }
            return images
        }
    }

    /// Begins loads, and delivers the bytes to all of them at once.
    private func begin(
        _ requests: [(inout ImageRequest) -> Void],
        of body: Data,
        by coder: any ImageCoder,
        memory: Int? = nil,
        laneCount: Int? = nil,
        headersHeldBy headerLatch: Latch? = nil
    ) async throws -> Loads {
        let (gate, latch, origin) = (Gate(), Latch(), ScriptedOrigin([:]))
        origin.script("/a", .held(by: gate, body: Array(body)))
        let counting = Counting(
            base: coder,
            decodes: self.decodes,
            latch: latch,
            headers: self.headers,
            headerLatch: headerLatch
        )
        let loader = try LoaderFixture(origin: origin).makeLoader {
            $0.coders = CoderRegistry(coders: [counting])
            $0.disk = nil
            // The held decodes leave one lane for the headers.
            $0.laneCount = laneCount ?? requests.count + 1
            if let memory { $0.decodingMemory = memory }
        }
        let tasks = requests.map { change in
            var request = ImageRequest(url: origin.url("/a"))
            change(&request)
            return Task { [request] in try await loader.image(for: request) }
        }
        await until { await loader.bytesWaiterCount == requests.count }
        await gate.open()
        return Loads(loader: loader, tasks: tasks, latch: latch, origin: origin)
    }

    /// Returns the images of requests that get their bytes at once.
    ///
    /// The decoder has all requests before it begins.
    private func images(
        of body: Data,
        by coder: any ImageCoder,
        waiting: Int,
        memory: Int? = nil,
        _ requests: [(inout ImageRequest) -> Void]
    ) async throws -> [Image] {
        let loads = try await self.begin(requests, of: body, by: coder, memory: memory)
        let images = try await loads.images(waiting: waiting)
        #expect(loads.origin.requestCount(for: "/a") == 1)
        return images
    }

    /// Returns the image of one request alone.
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

    /// Alone, the sizes decode a JPEG at an eighth, a quarter or a half, and a WebP at a scale for each size.
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
        #expect((self.headers.count, self.decodes.count) == (1, 1))
        let whole = try ImageDecoder(body, registry: CoderRegistry(coders: [coder])).decode()
        for (width, image) in zip(widths, images) {
            #expect(image.width == width)
            let alone = try await self.image(of: body, by: coder) { $0.thumbnail = .fit(width: width, height: width) }
            let best = try whole.resized(.fit(width: width, height: width))
            #expect(Self.meanDifference(image, best) <= Self.meanDifference(alone, best) + 0.01, "\(width)")
        }
    }

    @Test func `many small sizes are not made of a large image if another decode costs less`() async throws {
        // 1,000 pixels need the whole image. Each other image is made from 54,000 pixels instead of 3.4 million. The
        // largest image shares nothing.
        let body = try Fixtures.data("flower.jpg")
        let sizes = [1_000] + Array(60..<70)
        let images = try await self.images(
            of: body,
            by: JPEGCoder(),
            waiting: sizes.count - 1,
            sizes.map { width in { $0.thumbnail = .fit(width: width, height: width) } }
        )
        #expect(images.map(\.width) == sizes)
        #expect(self.decodes.count == 2)
        let alone = try await self.image(of: body, by: JPEGCoder()) { $0.thumbnail = .fit(width: 64, height: 64) }
        #expect(alone.pixels.samples == images[5].pixels.samples)
    }

    @Test func `an image that is streamed alone is decoded once, whole, for several, if its memory permits`()
        async throws
    {
        // The pixels take 35 MiB.
        let coder = FlatCoder(width: 3_500, height: 3_500)
        let sizes: [(inout ImageRequest) -> Void] = [10, 20, 30].map { width in
            { $0.thumbnail = .fit(width: width, height: width) }
        }
        let body = Data(try Fixtures.data("camera.jpg"))
        _ = try await self.images(of: body, by: coder, waiting: 3, memory: 256 << 20, sizes)
        #expect(self.decodes.count == 1)
        // Each decode streams, and does not wait for a shared one.
        _ = try await self.images(of: body, by: coder, waiting: 0, memory: 64 << 20, sizes)
        #expect(self.decodes.count == 1 + 3)
    }

    @Test func `transforms that begin alike are applied once`() async throws {
        let body = try Fixtures.data("camera.png")
        let pipelines: [TransformPipeline] = [[self.a], [self.a, self.b], [self.a, self.b, self.c], [self.b], []]
        let images = try await self.images(
            of: body,
            by: PNGCoder(),
            waiting: pipelines.count,
            pipelines.map { pipeline in { $0.transforms = pipeline } }
        )
        // The four transforms are a, b after a, c after b, and b alone.
        #expect((self.decodes.count, self.transforms.count) == (1, 4))
        for (pipeline, image) in zip(pipelines, images) {
            let alone = try await self.image(of: body, by: PNGCoder()) { $0.transforms = pipeline }
            #expect(alone.pixels.samples == image.pixels.samples)
        }
    }

    @Test func `of a thumbnail the resize is shared, and operations that are one pass are not taken apart`()
        async throws
    {
        let body = try Fixtures.data("flower.jpg")
        let (dark, warm) = (ColorAdjustment.brightness(0.7), ColorAdjustment.saturation(1.7))
        let pipelines: [TransformPipeline] = [
            [.adjust(dark)], [.adjust(dark), .adjust(warm)], [.adjust(dark), self.a],
        ]
        let images = try await self.images(
            of: body,
            by: JPEGCoder(),
            waiting: pipelines.count,
            pipelines.map { pipeline in
                {
                    $0.transforms = pipeline
                    $0.thumbnail = .fit(width: 90, height: 90)
                }
            }
        )
        #expect(self.decodes.count == 1)
        for (pipeline, image) in zip(pipelines, images) {
            let alone = try await self.image(of: body, by: JPEGCoder()) {
                $0.transforms = pipeline
                $0.thumbnail = .fit(width: 90, height: 90)
            }
            #expect(alone.pixels.samples == image.pixels.samples)
        }
    }

    @Test func `one lane is enough, and requests that decode differently share nothing`() async throws {
        let options: [LoadOptions] = [[], [.keepColorProfile], [], [.keepColorProfile], [.allowTruncated]]
        let loads = try await self.begin(
            options.enumerated().map { index, options in
                {
                    $0.options = options
                    $0.thumbnail = .fit(width: 60 + index, height: 60 + index)
                }
            },
            of: Fixtures.data("flower.jpg"),
            by: JPEGCoder(),
            laneCount: 1
        )
        // The first decode holds the only lane, so no header is read behind it, however many loads wait.
        loads.latch.open()
        for (index, task) in loads.tasks.enumerated() { #expect(try await task.value.width == 60 + index) }
        #expect((self.headers.count, self.decodes.count) == (3, 3))
    }

    // MARK: Loads that leave

    private static func sizes(_ widths: [Int]) -> [(inout ImageRequest) -> Void] {
        widths.map { width in { $0.thumbnail = .fit(width: width, height: width) } }
    }

    @Test(arguments: 0..<4)
    func `a load that is cancelled while the images are planned holds up no other`(index: Int) async throws {
        let headerLatch = Latch()
        let widths = [60, 110, 160, 210]
        let body = try Fixtures.data("flower.jpg")
        let loads = try await self.begin(Self.sizes(widths), of: body, by: JPEGCoder(), headersHeldBy: headerLatch)
        await until { self.headers.count == 1 }
        loads.tasks[index].cancel()
        await #expect(throws: CancellationError.self) { try await loads.tasks[index].value }
        await until { await loads.loader.loadCount == widths.count - 1 }
        headerLatch.open()
        await until { await loads.loader.decodeWaiterCount == widths.count - 1 }
        loads.latch.open()
        for (other, width) in widths.enumerated() where other != index {
            #expect(try await loads.tasks[other].value.width == width)
        }
        #expect((self.headers.count, self.decodes.count) == (1, 1))
    }

    @Test(arguments: 0..<4)
    func `a load that is cancelled while a decode runs holds up no other`(index: Int) async throws {
        let widths = [60, 110, 160, 210]
        let loads = try await self.begin(Self.sizes(widths), of: Fixtures.data("flower.jpg"), by: JPEGCoder())
        await until { await loads.loader.decodeWaiterCount == widths.count }
        loads.tasks[index].cancel()
        await #expect(throws: CancellationError.self) { try await loads.tasks[index].value }
        await until { await loads.loader.decodeWaiterCount == widths.count - 1 }
        loads.latch.open()
        for (other, width) in widths.enumerated() where other != index {
            #expect(try await loads.tasks[other].value.width == width)
        }
        #expect(self.decodes.count == 1)
        await until { loads.loader.services.decoding.lanes.gate.usedWeight == 0 }
    }

    @Test func `if all loads are cancelled while the images are planned, nothing is left`() async throws {
        let headerLatch = Latch()
        let body = try Fixtures.data("flower.jpg")
        let loads = try await self.begin(Self.sizes([60, 110]), of: body, by: JPEGCoder(), headersHeldBy: headerLatch)
        await until { self.headers.count == 1 }
        for task in loads.tasks { task.cancel() }
        for task in loads.tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        headerLatch.open()
        await loads.loader.shutdown()
        #expect(self.decodes.count == 0)
        #expect(loads.loader.services.decoding.lanes.gate.usedWeight == 0)
    }

    @Test func `a load whose plan fails gets the error, and the others share a decode`() async throws {
        let loads = try await self.begin(
            Self.sizes([60, 110, 160]) + [{ $0.thumbnail = .stretch(width: 20_000, height: 20_000, upscales: true) }],
            of: Fixtures.data("flower.jpg"),
            by: JPEGCoder()
        )
        let error = await #expect(throws: LoadError.self) { try await loads.tasks[3].value }
        #expect(error?.code == .invalidSize)
        await until { await loads.loader.decodeWaiterCount == 3 }
        loads.latch.open()
        for (task, width) in zip(loads.tasks, [60, 110, 160]) { #expect(try await task.value.width == width) }
        #expect((self.headers.count, self.decodes.count) == (1, 1))
    }

    @Test func `a header that no coder reads fails every load`() async throws {
        let body = try Fixtures.data("flower.jpg").prefix(64)
        let loads = try await self.begin(Self.sizes([60, 110, 160]), of: Data(body), by: JPEGCoder())
        for task in loads.tasks { await #expect(throws: LoadError.self) { try await task.value } }
        #expect(self.decodes.count == 0)
    }

    /// A load whose image the origin confirms needs no decode.
    ///
    /// If it counted, the others would share a larger decode.
    @Test func `a load whose image the origin confirms takes no part`() async throws {
        let (gate, origin) = (Gate(), ScriptedOrigin([:]))
        let body = try Fixtures.data("flower.jpg")
        let fields: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"1\""]
        origin.script("/a", .body(Array(body), headers: fields))
        let fixture = try LoaderFixture(origin: origin)
        let loader = fixture.makeLoader { $0.cachePolicy = .honorFreshness }
        func request(_ width: Int, _ options: LoadOptions = []) -> ImageRequest {
            ImageRequest(url: origin.url("/a"), thumbnail: .fit(width: width, height: width), options: options)
        }
        _ = try await loader.image(for: request(500, [.waitForStore]))
        #expect(fixture.decodes.count == 1)
        var answer = ScriptedResponse.body([], status: 304, headers: fields)
        answer.steps.insert(.wait(gate), at: 0)
        origin.script("/a", answer)
        let requests = [request(500, [.keepData]), request(60), request(70)]
        let tasks = requests.map { request in Task { try await loader.response(for: request) } }
        await until { await loader.bytesWaiterCount == 3 }
        await gate.open()
        let confirmed = try await tasks[0].value
        #expect((confirmed.source, confirmed.data, confirmed.image.width) == (.memory, body, 500))
        for task in tasks[1...] {
            let image = try await task.value.image
            let alone = try await self.image(of: body, by: JPEGCoder()) {
                $0.thumbnail = .fit(width: image.width, height: image.width)
            }
            #expect(image.pixels.samples == alone.pixels.samples)
        }
        #expect(fixture.decodes.count == 2)
        #expect(origin.requestCount(for: "/a") == 2)
    }

    @Test func `thumbnails of an original in memory share a decode of the same bytes from the origin`() async throws {
        let (gate, origin) = (Gate(), ScriptedOrigin([:]))
        let body = try Fixtures.data("flower.jpg")
        let fields: HeaderFields = ["Cache-Control": "max-age=0"]
        origin.script("/a", .held(by: gate, body: Array(body)))
        origin.script("/a", sequence: [.body(Array(body), headers: fields)])
        let fixture = try LoaderFixture(origin: origin)
        let loader = fixture.makeLoader {
            $0.cachePolicy = .honorFreshness
            $0.disk = nil
        }
        _ = try await loader.image(for: ImageRequest(url: origin.url("/a")))
        let requests = [60, 70].map {
            ImageRequest(url: origin.url("/a"), thumbnail: .fit(width: $0, height: $0))
        }
        let tasks = requests.map { request in Task { try await loader.image(for: request) } }
        await until { await loader.bytesWaiterCount == 2 }
        await gate.open()
        for (task, width) in zip(tasks, [60, 70]) { #expect(try await task.value.width == width) }
        #expect(fixture.decodes.count == 2)
    }

    @Test func `a thumbnail with a damaged entry on disk is decoded from bytes that others share`() async throws {
        let (gate, origin) = (Gate(), ScriptedOrigin([:]))
        let body = try Fixtures.data("flower.jpg")
        let fields: HeaderFields = ["Cache-Control": "max-age=0"]
        origin.script("/a", .held(by: gate, body: Array(body)))
        origin.script("/a", sequence: [.body(Array(body), headers: fields)])
        let loader = try LoaderFixture(origin: origin).makeLoader {
            $0.cachePolicy = .honorFreshness
            $0.variantEncoder = { _, _ in Data("no image".utf8) }
        }
        func request(_ width: Int) -> ImageRequest {
            let thumbnail = Resize.fit(width: width, height: width)
            return ImageRequest(url: origin.url("/a"), thumbnail: thumbnail, options: [.waitForStore])
        }
        _ = try await loader.image(for: request(60))
        try await loader.cache.removeAll(from: .memory)
        let tasks = [60, 70].map { width in Task { try await loader.image(for: request(width)) } }
        await until { await loader.bytesWaiterCount == 2 }
        await gate.open()
        for (task, width) in zip(tasks, [60, 70]) { #expect(try await task.value.width == width) }
    }
}
