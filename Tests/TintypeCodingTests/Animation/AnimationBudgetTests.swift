// SPDX-License-Identifier: Apache-2.0

#if WebP
import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConcurrency
import TintypeImage
import TintypeTestTraits

@testable import TintypeCoding

/// GIFs and WebPs whose few bytes take much time to decode.
@Suite(.computing, .timeLimit(.minutes(10))) struct AnimationBudgetTests {
    /// A file whose pixels take almost no bytes.
    struct FlatFile: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let data: Data

        static let all: [FlatFile] = {
            let (width, height) = (2_400, 2_000)
            let frame = HostileGIF.Frame(width: width, height: height)
            let gif = HostileGIF.file(width: width, height: height, frames: [frame])
            let clear = HostileGIF.Frame(width: width, height: height, disposal: 3, transparentIndex: 0)
            let moving = HostileGIF.file(width: width, height: height, frames: [clear, clear])
            func webp(_ compression: EncodeOptions.Compression, _ color: [UInt8]) -> Data {
                let options = EncodeOptions(quality: 50, compression: compression)
                let pixels = try? WebPSamples.flat(color, width: width, height: height)
                return (try? pixels.map { try WebPCoder().encode(Image(pixels: $0), as: .webp, options: options) })
                    .flatMap(\.self) ?? Data()
            }
            return [
                FlatFile(testDescription: "GIF", data: gif),
                FlatFile(testDescription: "animated GIF", data: moving),
                FlatFile(testDescription: "lossy WebP", data: webp(.lossy, [9, 99, 199])),
                FlatFile(testDescription: "lossy WebP with alpha", data: webp(.lossy, [9, 99, 199, 77])),
                FlatFile(testDescription: "lossless WebP", data: webp(.lossless, [9, 99, 199])),
                FlatFile(testDescription: "lossless WebP with alpha", data: webp(.lossless, [9, 99, 199, 77])),
            ]
        }()
    }

    /// Returns the work counted at each check for cancellation.
    private static func looks(of body: () throws -> Void) rethrows -> [Int] {
        let looks = Locked<[Int]>([])
        try DecodeWork.$observer.withValue(.init { spent in looks.withLock { $0.append(spent) } }, operation: body)
        return looks.withLock { $0 }
    }

    @Test(arguments: FlatFile.all) func `a flat image is looked at again and again while it is decoded`(
        file: FlatFile
    ) throws {
        let looks = try Self.looks { _ = try SampleFiles.decode(file.data) }
        // The image has 4.8 million pixels.
        #expect(looks.count >= 3)
        for (before, after) in zip([0] + looks, looks) {
            #expect(after - before <= 2 * DecodeWork.unitsBetweenLooks)
        }
    }

    @Test(arguments: FlatFile.all) func `a flat image's decode ends at the look after its cancellation`(
        file: FlatFile
    ) async throws {
        let looks = Locked<[Int]>([])
        let task = Task {
            try DecodeWork.$observer.withValue(
                .init { spent in
                    looks.withLock { $0.append(spent) }
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            ) {
                _ = try SampleFiles.decode(file.data)
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(looks.withLock(\.count) == 1)
    }

    @Test(arguments: FlatFile.all) func `an image over the budget is refused while it is decoded`(
        file: FlatFile
    ) throws {
        let options = DecodeOptions(limits: DecodingLimits(maximumWork: 3_000_000))
        let error = #expect(throws: CodingError.self) { try SampleFiles.decode(file.data, options) }
        #expect(error?.code == .tooMuchWork)
    }

    @Test func `previews of a flat image are within the budget too`() throws {
        for file in FlatFile.all {
            let format = try #require(ImageFormat(sniffing: file.data))
            let options = DecodeOptions(limits: DecodingLimits(maximumWork: 3_000_000))
            let coder = try SampleFiles.registry.coder(decoding: file.data)
            let decoder = try #require(try coder.makeIncrementalDecoder(for: format, options: options))
            let error = #expect(throws: CodingError.self, "\(file.testDescription)") {
                try decoder.append(file.data)
                _ = try decoder.preview()
                _ = try decoder.finish()
            }
            #expect(error?.code == .tooMuchWork)
        }
    }

    // MARK: Frames

    @Test func `an animation of too many frames is refused from its list`() throws {
        let frame = HostileGIF.Frame(width: 1, height: 1)
        let gif = HostileGIF.file(width: 9_000, height: 9_000, frames: Array(repeating: frame, count: 60_000))
        #expect(gif.count < 1_600_000)
        let image = try WebPSamples.image(try WebPSamples.flat([1, 2, 3, 4], width: 1, height: 1))
        let webp = WebPSamples.file(
            [WebPSamples.extended(2, 9_000, 9_000), WebPSamples.timing(loopCount: 0)]
                + Array(repeating: WebPSamples.frame(image, width: 1, height: 1), count: 13)
        )
        for data in [gif, webp] {
            let error = #expect(throws: CodingError.self) { try ImageDecoder(data, registry: SampleFiles.registry) }
            // The thirteenth canvas takes the total over a thousand million pixels.
            #expect(error?.code == .animationTooLarge)
        }
    }

    @Test(arguments: [ImageFormat.gif, .webp]) func `the number of frames is limited, and all their pixels are`(
        format: ImageFormat
    ) throws {
        let data = try Self.frames(100, of: format, width: 50, height: 40)
        func code(_ limits: DecodingLimits) -> CodingError.Code? {
            do {
                _ = try ImageDecoder(data, registry: SampleFiles.registry, limits: limits)
                return nil
            } catch {
                return (error as? CodingError)?.code
            }
        }
        #expect(code(DecodingLimits(maximumFrames: 99)) == .tooManyFrames)
        #expect(code(DecodingLimits(maximumFrames: 100)) == nil)
        #expect(code(DecodingLimits(maximumAnimationPixels: 199_999)) == .animationTooLarge)
        #expect(code(DecodingLimits(maximumAnimationPixels: 200_000)) == nil)
        let coder = try SampleFiles.registry.coder(decoding: data)
        let options = DecodeOptions(limits: DecodingLimits(maximumFrames: 99))
        let decoder = try #require(try coder.makeIncrementalDecoder(for: format, options: options))
        let error = #expect(throws: CodingError.self) { try decoder.append(data) }
        #expect(error?.code == .tooManyFrames)
    }

    /// Nine such frames of 25 megapixels fit in 870 kB and take 6 s of processor time, two thirds of it for the
    /// colours.
    @Test func `frames whose colours are converted count three times`() throws {
        var header = ImageHeader(format: .png, pixelWidth: 5_000, pixelHeight: 5_000)
        header.animation.durations = Array(repeating: 100, count: 9)
        try DecodingLimits().check(header)
        header.colorProfile = Data([1])
        let error = #expect(throws: CodingError.self) { try DecodingLimits().check(header) }
        #expect(error?.code == .animationTooLarge)
        header.animation.durations = Array(repeating: 100, count: 6)
        try DecodingLimits().check(header)
    }

    @Test(arguments: [ImageFormat.png, .gif, .webp]) func `a header has the same limits by default in every coder`(
        format: ImageFormat
    ) throws {
        let data = try Self.frames(10_001, of: format, width: 1, height: 1)
        let coder = try SampleFiles.registry.coder(decoding: data)
        let error = #expect(throws: CodingError.self) { try coder.open(data) }
        #expect(error?.code == .tooManyFrames)
        // The caller's own limits apply to the end of the decode.
        let options = DecodeOptions(limits: DecodingLimits(maximumFrames: 20_000))
        let decoder = try #require(try coder.makeIncrementalDecoder(for: format, options: options))
        try decoder.append(data)
        #expect(try decoder.finish().image.width == 1)
    }

    @Test(arguments: [ImageFormat.gif, .webp]) func `frames that are drawn over count for the one that is asked for`(
        format: ImageFormat
    ) throws {
        let data = try Self.frames(100, of: format, width: 200, height: 200)
        let looks = DecodingLimits(maximumWork: 2_000_000)
        let first = try ImageDecoder(data, registry: SampleFiles.registry, limits: looks)
        #expect(try first.decode(options: DecodeOptions(limits: looks)).width == 200)
        let error = #expect(throws: CodingError.self) {
            try first.decode(options: DecodeOptions(limits: looks, frame: 99))
        }
        #expect(error?.code == .tooMuchWork)
    }

    @Test func `frames that leave nothing behind are not drawn for a later one`() throws {
        let areas = [AnimationFrame.Disposal.keep, .previous, .background, .previous, .keep].map {
            AnimationFrame(left: 1, top: 1, width: 3, height: 2, disposal: $0)
        }
        let animation = try ScriptedFrames(canvas: PixelSize(width: 6, height: 5), frames: areas)
        _ = try FrameCompositor(animation).frame(at: 4, isLast: true)
        #expect(animation.decodeCount == 2)
    }

    /// Partly transparent frames, each over the one before.
    private static func frames(_ count: Int, of format: ImageFormat, width: Int, height: Int) throws -> Data {
        if format == .png { return SlowFiles.flatAPNG(width, height, frameCount: count).data }
        if format == .gif {
            let frame = HostileGIF.Frame(width: width, height: height, transparentIndex: 3)
            return HostileGIF.file(width: width, height: height, frames: Array(repeating: frame, count: count))
        }
        let pixels = try WebPSamples.flat([9, 99, 199, 77], width: width, height: height)
        let frame = WebPSamples.frame(try WebPSamples.image(pixels), width: width, height: height)
        return WebPSamples.file(
            [WebPSamples.extended(2, width, height), WebPSamples.timing(loopCount: 0)]
                + Array(repeating: frame, count: count)
        )
    }

    // MARK: Floods

    @Test func `a flood of comments is counted and ends`() throws {
        let comments = [UInt8]([[UInt8]](repeating: [0x21, 0xFE, 1, 0x41, 0], count: 200_000).joined())
        let start = HostileGIF.start(width: 2, height: 2)
        var end: [UInt8] = []
        HostileGIF.append(HostileGIF.Frame(width: 2, height: 2), to: &end)
        let data = Data(start + comments + end + [0x3B])
        #expect(try SampleFiles.decode(data).width == 2)
        let error = #expect(throws: CodingError.self) {
            try ImageDecoder(data, registry: SampleFiles.registry, limits: DecodingLimits(maximumWork: 1_000_000))
        }
        #expect(error?.code == .tooMuchWork)
        #expect(try Self.looks { _ = try ImageDecoder(data, registry: SampleFiles.registry) }.count >= 4)
    }

    @Test func `a flood of chunks is counted and ends`() throws {
        let flood = [UInt8](repeating: 0, count: 4 << 20)
        let image = try WebPSamples.image(try WebPSamples.flat([1, 2, 3], width: 8, height: 6))
        let data = WebPSamples.file([WebPSamples.extended(0, 8, 6), image, flood])
        #expect(try SampleFiles.decode(data).width == 8)
        let error = #expect(throws: CodingError.self) {
            try ImageDecoder(data, registry: SampleFiles.registry, limits: DecodingLimits(maximumWork: 1_000_000))
        }
        #expect(error?.code == .tooMuchWork)
    }

    @Test func `an image beside the screen takes no work`() throws {
        let inside = HostileGIF.Frame(width: 2, height: 2)
        let beside = HostileGIF.Frame(left: 40, top: 0, width: 6_000, height: 6_000)
        let data = HostileGIF.file(width: 2, height: 2, frames: [inside, beside, inside])
        #expect(try Self.looks { _ = try SampleFiles.decode(data, DecodeOptions(frame: 2)) }.isEmpty)
    }
}
#endif
