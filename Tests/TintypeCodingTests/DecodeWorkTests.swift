// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// The limit on a decode's total work, and how often a decode checks for cancellation.
@Suite(.computing, .timeLimit(.minutes(10))) struct DecodeWorkTests {
    // MARK: The meter

    @Test func `work over the budget is refused by name`() throws {
        let work = DecodeWork(DecodingLimits(maximumWork: 1_000), format: .png)
        try work.count(1_000)
        #expect(work.left == 0)
        let error = #expect(throws: CodingError.self) { try work.count(1) }
        #expect(error?.code == .tooMuchWork)
        #expect(error?.code.description == "tooMuchWork")
        #expect(error?.format == .png)
        #expect(error?.message.contains("1000") == true)
        #expect(error?.message.contains("raise that limit") == true)
    }

    @Test func `work that is known to come is refused before it is done`() throws {
        let work = DecodeWork(DecodingLimits(maximumWork: 1_000))
        try work.count(400)
        try work.require(600)
        #expect(throws: CodingError.self) { try work.require(601) }
        #expect(throws: CodingError.self) { try work.require(.max) }
        #expect(work.spent == 400)
    }

    @Test func `sums over all numbers are refused and do not trap`() throws {
        let work = DecodeWork(DecodingLimits(maximumWork: .max - 1))
        try work.count(.max - 2)
        #expect(throws: CodingError.self) { try work.count(.max - 2) }
        #expect(throws: CodingError.self) { try work.count(bytes: .max) }
    }

    // MARK: The budget

    /// A file of 70 kB declares hundreds of scans over 100 megapixels, and the decoder refuses it before the first
    /// scan.
    @Test(arguments: [false, true]) func `scans that are too much in all are refused at once`(isArithmetic: Bool) throws
    {
        let data = SlowFiles.scans(499, 10_000, 10_000, isArithmetic: isArithmetic)
        #expect(data.count < 80_000)
        let (looks, error) = DecodeWork.looks { _ = try SampleFiles.decode(data) }
        #expect((error as? CodingError)?.code == .tooMuchWork)
        #expect(looks.isEmpty)
    }

    @Test func `scans that arrive are counted`() throws {
        let limits = DecodingLimits(maximumWork: 4_000_000)
        func decode(scanCount: Int) throws {
            let data = SlowFiles.scans(scanCount, 1_000, 1_000)
            let coder = JPEGCoder()
            let decoder = try #require(
                try coder.makeIncrementalDecoder(for: .jpeg, options: DecodeOptions(limits: limits))
            )
            for start in stride(from: 0, to: data.count, by: 100) {
                try decoder.append(data.dropFirst(start).prefix(100))
            }
            _ = try decoder.finish()
        }
        try decode(scanCount: 8)
        let error = #expect(throws: CodingError.self) { try decode(scanCount: 30) }
        #expect(error?.code == .tooMuchWork)
    }

    @Test(arguments: [ImageFormat.jpeg, .png]) func `a budget that is just enough is enough`(format: ImageFormat) throws
    {
        let data = try SampleFiles.smooth(format, width: 2_000, height: 1_000)
        var enough = DecodeOptions()
        // The decoder counts each pixel at least once, and adds a little for the bytes.
        enough.limits.maximumWork = 2_000_000 * 6
        _ = try SampleFiles.decode(data, enough)
        var tooFew = enough
        tooFew.limits.maximumWork = 1_999_999
        let error = #expect(throws: CodingError.self) { try SampleFiles.decode(data, tooFew) }
        #expect(error?.code == .tooMuchWork)
        // Allowing truncated files does not lift the limit on work.
        tooFew.allowsTruncated = true
        let lenient = #expect(throws: CodingError.self) { try SampleFiles.decode(data, tooFew) }
        #expect(lenient?.code == .tooMuchWork)
    }

    @Test func `frames are limited in number and in all their pixels`() throws {
        let data = SlowFiles.flatAPNG(100, 100, frameCount: 11).data
        func refusal(_ limits: DecodingLimits) -> CodingError? {
            #expect(throws: CodingError.self) { try ImageDecoder(data, registry: SampleFiles.registry, limits: limits) }
        }
        #expect(try ImageDecoder(data, registry: SampleFiles.registry).header.animation.frameCount == 11)
        let tooMany = refusal(DecodingLimits(maximumFrames: 10))
        #expect(tooMany?.code == .tooManyFrames)
        #expect(tooMany?.message.contains("the limit is 10;") == true)
        let tooLarge = refusal(DecodingLimits(maximumAnimationPixels: 109_999))
        #expect(tooLarge?.code == .animationTooLarge)
        #expect(tooLarge?.message.contains("limit is 109999;") == true)
        _ = try ImageDecoder(
            data,
            registry: SampleFiles.registry,
            limits: DecodingLimits(maximumFrames: 11, maximumAnimationPixels: 110_000)
        )
    }

    @Test func `a frame keeps to the limits of its own decode`() throws {
        let data = SlowFiles.flatAPNG(100, 100, frameCount: 11).data
        let coder = PNGCoder()
        let encoded = try coder.open(data)
        var options = DecodeOptions(limits: DecodingLimits(maximumWork: 3_000))
        options.frame = 10
        let error = #expect(throws: CodingError.self) { try encoded.decode(options: options) }
        #expect(error?.code == .tooMuchWork)
    }

    /// The list of frames alone would take more memory than any limit allows.
    @Test(.enabled(if: AllocatedMemory.isMeasured)) func `a flood of frames ends where the limit is`() throws {
        let data = SlowFiles.flatAPNG(1, 1, frameCount: 30_000).data
        let (error, peak) = AllocatedMemory.peak {
            #expect(throws: CodingError.self) { try ImageDecoder(data, registry: SampleFiles.registry) }
        }
        #expect(error?.code == .tooManyFrames)
        #expect(peak < 4 << 20)
    }

    // MARK: Cancellation

    /// A file that takes long to decode for its size, and a way to decode it.
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let make: @Sendable () -> Data
        let decode: @Sendable (Data) throws -> Void
        /// The least number of checks for cancellation.
        let looks: Int

        init(
            _ name: String,
            looks: Int,
            _ make: @autoclosure @escaping @Sendable () -> Data,
            _ decode: @escaping @Sendable (Data) throws -> Void
        ) {
            self.testDescription = name
            self.looks = looks
            self.make = make
            self.decode = decode
        }
    }

    private static let cases = [
        Case("flat JPEG", looks: 10, SlowFiles.flatJPEG(4_000, 4_000), Self.decodeWhole),
        Case("flat JPEG, its rows", looks: 10, SlowFiles.flatJPEG(4_000, 4_000), Self.decodeRows),
        Case("flat JPEG that arrives", looks: 10, SlowFiles.flatJPEG(4_000, 4_000), Self.decodeIncrementally),
        Case("scans", looks: 8, SlowFiles.scans(10, 2_000, 2_000), Self.decodeWhole),
        Case("scans that arrive", looks: 8, SlowFiles.scans(10, 2_000, 2_000), Self.decodeIncrementally),
        Case("arithmetic scans", looks: 8, SlowFiles.scans(3, 2_000, 2_000, isArithmetic: true), Self.decodeWhole),
        Case("flat PNG", looks: 10, SlowFiles.flatPNG(4_000, 4_000).data, Self.decodeWhole),
        Case("flat PNG, its rows", looks: 10, SlowFiles.flatPNG(4_000, 4_000).data, Self.decodeRows),
        Case("flat PNG that arrives", looks: 10, SlowFiles.flatPNG(4_000, 4_000).data, Self.decodeIncrementally),
        Case("frames", looks: 10, SlowFiles.flatAPNG(2_000, 2_000, frameCount: 4).data, Self.decodeFrames),
        Case("fill bytes", looks: 2, Self.padded(Self.fill), Self.readHeader),
        Case(
            "bytes between segments",
            looks: 2,
            Self.padded(SlowFiles.comments(1) + Data(count: 3_000_000)),
            Self.readHeader
        ),
        Case("comments", looks: 2, Self.padded(SlowFiles.comments(150_000)), Self.readHeader),
        Case("fill bytes, decoded", looks: 12, Self.padded(Self.fill), Self.decodeWhole),
        Case("fill bytes that arrive", looks: 12, Self.padded(Self.fill), Self.decodeIncrementally),
        Case("comments, decoded", looks: 3, Self.padded(SlowFiles.comments(150_000)), Self.decodeWhole),
        Case("empty chunks", looks: 1, Self.emptyChunks(280_000), Self.readHeader),
    ]

    @Test(arguments: Self.cases) func `a decode looks often, and ends at the look that finds it cancelled`(
        _ example: Case
    ) async throws {
        let data = example.make()
        let (looks, error) = DecodeWork.looks { try example.decode(data) }
        #expect(error == nil)
        #expect(looks.count >= example.looks)
        let steps = zip([0] + looks, looks).map { $1 - $0 }
        // Ten steps are 50 ms. libdeflate inflates several scanlines at once, in a single step. A new meter begins at
        // 0.
        #expect(steps.allSatisfy { $0 <= 10 * DecodeWork.unitsBetweenLooks })

        let last = example.looks / 2
        let task = Task {
            DecodeWork.looks(cancellingAt: last) { try example.decode(data) }
        }
        let (untilCancelled, cancellation) = await task.value
        #expect(cancellation is CancellationError)
        #expect(untilCancelled.count == max(1, last))
    }

    private static let fill = Data(repeating: 0xFF, count: 3_000_000)

    private static func padded(_ padding: Data) -> Data { SlowFiles.flatJPEG(16, 16, after: padding) }

    private static func emptyChunks(_ count: Int) -> Data {
        let file = SlowFiles.flatPNG(16, 16)
        let empty = PNGFile(chunks: [.init(type: "prVt", body: [])]).data.dropFirst(8)
        var data = file.data
        let chunks = Data((0..<count).flatMap { _ in empty })
        data.insert(contentsOf: chunks, at: 33)
        return data
    }

    private static func readHeader(_ data: Data) throws {
        _ = try ImageDecoder(data, registry: SampleFiles.registry)
    }

    private static func decodeWhole(_ data: Data) throws {
        let coder = try SampleFiles.registry.coder(decoding: data)
        _ = try coder.open(data).decode(options: DecodeOptions())
    }

    private static func decodeRows(_ data: Data) throws {
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        _ = try decoder.withRows(options: DecodeOptions()) { rows, _, _ in
            let row = UnsafeMutableRawBufferPointer.allocate(
                byteCount: rows.layout.planes[0].bytesPerRow,
                alignment: PixelLayout.alignment
            )
            defer { row.deallocate() }
            for _ in 0..<rows.layout.height { try rows.readRow(into: row) }
        }
    }

    private static func decodeFrames(_ data: Data) throws {
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        let compositor = try #require(try decoder.makeCompositor())
        for index in 0..<decoder.header.animation.frameCount { _ = try compositor.frame(at: index) }
    }

    private static func decodeIncrementally(_ data: Data) throws {
        let coder = try SampleFiles.registry.coder(decoding: data)
        let format = try #require(ImageFormat(sniffing: data))
        let decoder = try #require(try coder.makeIncrementalDecoder(for: format, options: DecodeOptions()))
        // Two large pieces show that the decoder counts pixels and not only the bytes that it receives.
        try decoder.append(data.prefix(data.count / 2))
        try decoder.append(data.dropFirst(data.count / 2))
        _ = try decoder.finish()
    }
}
