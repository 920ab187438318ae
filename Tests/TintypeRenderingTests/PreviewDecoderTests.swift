// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConcurrency
import TintypeConformanceSupport
import TintypeImage
import TintypeRendering
import TintypeTestSupport
import TintypeTestTraits

/// The memory and work that previews may take while bytes arrive.
@Suite(.computing, .timeLimit(.minutes(10))) struct PreviewDecoderTests {
    private static func previewCount(
        of data: Data,
        gate: WeightedGate? = nil,
        limits: DecodingLimits = DecodingLimits(),
        pieceCount: Int = 8,
        eachPiece: (WeightedGate?) -> Void = { _ in }
    ) async -> Int {
        // Wait for the decoder's end, because its lane releases the meters later than the caller.
        weak var unfinished: PreviewDecoder?
        var count = 0
        do {
            let decoder = PreviewDecoder(
                registry: SampleFiles.registry,
                options: DecodeOptions(limits: limits),
                lanes: DecodeLanes(count: 1),
                gate: gate
            )
            unfinished = decoder
            let step = data.count / pieceCount + 1
            for start in stride(from: 0, to: data.count, by: step) {
                if await decoder.append(data.dropFirst(start).prefix(step)) != nil { count += 1 }
                eachPiece(gate)
            }
        }
        while unfinished != nil { await Task.yield() }
        return count
    }

    @Test(arguments: [ImageFormat.jpeg, .png]) func `previews are weighed for as long as they are made`(
        format: ImageFormat
    ) async throws {
        let data = try SampleFiles.smooth(format, width: 640, height: 480)
        let gate = WeightedGate(capacity: 4 * 640 * 480 * 4)
        let weights = Locked<[Int]>([])
        let count = await Self.previewCount(of: data, gate: gate) { gate in
            weights.withLock { $0.append(gate?.usedWeight ?? 0) }
        }
        #expect(count > 1)
        #expect(weights.withLock { $0.contains { $0 >= 2 * 640 * 480 * 3 } })
        #expect(gate.usedWeight == 0)
    }

    @Test(arguments: [ImageFormat.jpeg, .png]) func `without room there are no previews`(
        format: ImageFormat
    ) async throws {
        let data = try SampleFiles.smooth(format, width: 640, height: 480)
        let gate = WeightedGate(capacity: 640 * 480 * 3)
        #expect(await Self.previewCount(of: data, gate: gate) == 0)
        #expect(gate.usedWeight == 0)
    }

    /// Checks that gray becomes colour if its profile is for colours, in previews as in the image.
    @Test(
        .enabled(if: AllocatedMemory.isMeasured && Fixtures.corpus != nil),
        arguments: [false, true]
    )
    func `previews are weighed with their conversion`(isGray: Bool) async throws {
        let path = try #require(Fixtures.corpus).appending(path: "icc-profiles/DisplayP3-v4.icc")
        var options = EncodeOptions(quality: 60)
        options.isProgressive = true
        options.metadata.colorProfile = try Data(contentsOf: path)
        let pixels = try PixelBuffer(
            PixelLayout(format: isGray ? .gray8 : .rgb8, width: 3_000, height: 2_000),
            fillingUnsafely: { $0.initializeMemory(as: UInt8.self, repeating: 100) }
        )
        let image = Image(pixels: pixels)
        let data = try JPEGCoder().encode(image, as: .jpeg, options: options)
        // The first decode caches the colour transform, which is not part of the image's memory.
        _ = try ImageDecoder(data, registry: SampleFiles.registry).decode()
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        let incremental = try #require(try JPEGCoder().makeIncrementalDecoder(for: .jpeg, options: DecodeOptions()))
        let (_, taken) = try AllocatedMemory.peak {
            try incremental.append(data.dropLast(10))
            let preview = try #require(try incremental.preview())
            _ = try decoder.finish(preview)
        }
        let gate = WeightedGate(capacity: 1 << 30)
        let previews = PreviewDecoder(registry: SampleFiles.registry, lanes: DecodeLanes(count: 1), gate: gate)
        #expect(await previews.append(data.dropLast(10)) != nil)
        let weight = gate.usedWeight
        #expect(taken <= weight + weight / 10 + 2 << 20, "weighed \(weight), took \(taken)")
        #expect(weight == decoder.byteCount(for: .incremental, options: DecodeOptions()))
    }

    // MARK: Work

    /// Returns the work and number of previews, and the work of one decode.
    private static func costs(of data: Data, pieceCount: Int) async throws -> (previews: Int, count: Int, decode: Int) {
        let decode = try await Self.units { _ = try SampleFiles.decode(data) }
        var count = 0
        let previews = await Self.units { count = await Self.previewCount(of: data, pieceCount: pieceCount) }
        return (previews, count, decode)
    }

    /// Returns the work of all meters that `body` creates.
    private static func units(of body: () async throws -> Void) async rethrows -> Int {
        let sum = Locked(0)
        let observer = DecodeWork.Observer(didEnd: { units in sum.withLock { $0 += units } })
        try await DecodeWork.$observer.withValue(observer) { try await body() }
        return sum.withLock { $0 }
    }

    /// Decodes a file of each kind, with the least number of previews for many pieces.
    @Test(
        .enabled(if: Corpus.isRead),
        arguments: [
            ("jpeg/flower.png.im_q85_420.jpg", 3), ("jpeg-progressive/flower.png.im_q85_420_progr.jpg", 1),
            ("jpeg-progressive/3.jpg", 2), ("photos/3.png", 3), ("png/interlaced.png", 3), ("gif/test.gif", 2),
            ("gif/interlaced.gif", 2), ("photos/webpvp8.webp", 3), ("webp/3_webp_a.webp", 2),
            ("webp/tux.lossless.webp", 3),
        ],
        [256, 4 << 10, 64 << 10]
    )
    func `all that is done for previews takes at most one and a half times a decode`(
        file: (path: String, leastCount: Int),
        pieceByteCount: Int
    ) async throws {
        let image = try #require(Corpus.images.first { $0.path == file.path })
        let data = try image.data
        let costs = try await Self.costs(of: data, pieceCount: data.count / pieceByteCount + 1)
        #expect(Double(costs.previews) <= 1.5 * Double(costs.decode))
        #expect(costs.count >= (pieceByteCount < 64 << 10 ? file.leastCount : 1))
    }

    /// Decoding a flat image costs little more than a copy of it.
    @Test(arguments: [ImageFormat.jpeg, .png, .webp], [8, 100])
    func `previews of flat images take no more either`(format: ImageFormat, pieceCount: Int) async throws {
        let data =
            format == .png
            ? SlowFiles.flatPNG(500, 500).data : try SampleFiles.smooth(format, width: 640, height: 480)
        let costs = try await Self.costs(of: data, pieceCount: pieceCount)
        #expect(Double(costs.previews) <= 1.5 * Double(costs.decode))
    }

    /// A flat image that arrives byte by byte gains a row each time, and each preview is a complete copy.
    @Test func `the work of all previews together is limited`() async throws {
        let data = SlowFiles.flatPNG(500, 500).data
        let all = await Self.previewCount(of: data, pieceCount: 50)
        #expect(all > 5)
        let limited = await Self.previewCount(
            of: data,
            limits: DecodingLimits(maximumWork: 450_000),
            pieceCount: 50
        )
        #expect(limited > 1)
        #expect(limited < all)
    }

    /// Decoding a flat image costs little more than a copy of it.
    @Test(arguments: [false, true]) func `previews of a large image take little more than the image`(
        isInterlaced: Bool
    ) async throws {
        var file = SlowFiles.flatPNG(4_000, 4_000, colorType: 6)
        if isInterlaced {
            file.chunks[0].body[12] = 1
            file.chunks[1].body = Array(SlowFiles.zeros(4_000 * 4_000 * 4 + 4_000 / 8 * 15))
        }
        let spent = Locked(0)
        let observer = DecodeWork.Observer { units in spent.withLock { $0 = max($0, units) } }
        let count = await DecodeWork.$observer.withValue(observer) {
            await Self.previewCount(of: file.data, pieceCount: 50)
        }
        #expect(count > 1)
        #expect(count <= 12)
        // The largest work of a single meter, either the decoder's or that of the previews.
        #expect(spent.withLock { $0 } < 4_000 * 4_000 * 8)
    }
}
