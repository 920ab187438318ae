// SPDX-License-Identifier: Apache-2.0

import CTintypeZlib
import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Compares our verdicts on the end of compressed pixels with libpng 1.6.
@Suite(.computing, .timeLimit(.minutes(2))) struct PNGStreamEndTests {
    /// A change to a sound zlib stream.
    enum Change: CaseIterable {
        case nothing
        case wrongChecksum
        case wrongChecksumInItsOwnChunk
        case noChecksum
        case halfAChecksum
        case noEnd
        case bytesBehindTheEnd
        case aChunkBehindTheEnd
        case morePixels
        case morePixelsAndAWrongChecksum
        case fewerPixels
        case presetDictionary
        case unknownMethod
        case windowTooLarge
        case wrongHeaderCheck

        /// The error code, or `nil` for a file that is decoded.
        var code: CodingError.Code? {
            switch self {
            case .nothing, .bytesBehindTheEnd, .aChunkBehindTheEnd, .morePixels, .morePixelsAndAWrongChecksum: nil
            case .noChecksum, .halfAChecksum, .noEnd, .fewerPixels: .truncated
            case .wrongChecksum, .wrongChecksumInItsOwnChunk, .presetDictionary, .unknownMethod, .windowTooLarge,
                .wrongHeaderCheck:
                .corrupt
            }
        }

        /// Returns the bodies of the chunks with the pixels.
        func bodies(_ samples: [UInt8]) -> [[UInt8]] {
            let stream = PNGStreamEndTests.deflated(samples)
            var wrong = stream
            wrong[wrong.count - 3] ^= 1
            switch self {
            case .nothing: return [stream]
            case .wrongChecksum: return [wrong]
            case .wrongChecksumInItsOwnChunk: return [Array(wrong.dropLast(4)), Array(wrong.suffix(4))]
            case .noChecksum: return [Array(stream.dropLast(4))]
            case .halfAChecksum: return [Array(stream.dropLast(2))]
            case .noEnd: return [Array(stream.dropLast(7))]
            case .bytesBehindTheEnd: return [stream + [1, 2, 3]]
            case .aChunkBehindTheEnd: return [stream, [1, 2, 3]]
            case .morePixels: return [PNGStreamEndTests.deflated(samples + [9])]
            case .morePixelsAndAWrongChecksum:
                var more = PNGStreamEndTests.deflated(samples + samples)
                more[more.count - 1] ^= 1
                return [more]
            case .fewerPixels: return [PNGStreamEndTests.deflated(samples.dropLast(1))]
            case .presetDictionary: return [PNGStreamEndTests.deflated(samples, dictionary: Array(samples.prefix(50)))]
            case .unknownMethod: return [[0x79, 0x18] + Array(stream.dropFirst(2))]
            case .windowTooLarge: return [[0x88, 0x1C] + Array(stream.dropFirst(2))]
            case .wrongHeaderCheck: return [[0x78, 0x9D] + Array(stream.dropFirst(2))]
            }
        }
    }

    @Test(arguments: Change.allCases, [8, 150]) func `every way to decode has one verdict`(
        change: Change,
        side: Int
    ) throws {
        let samples = Self.samples(side: side)
        for chunkSize in side < 100 ? [Int.max, 100, 1] : [Int.max, 100] {
            let bodies = change.bodies(samples).flatMap { Self.pieces($0, chunkSize) }
            let data = Self.file(side: side, bodies)
            let whole = PNGWays.whole(data, DecodeOptions())
            if let code = change.code {
                #expect(whole == .failed(code.description), "chunks of \(chunkSize)")
            } else {
                #expect(whole == PNGWays.whole(Self.file(side: side, [Self.deflated(samples)]), DecodeOptions()))
            }
            #expect(PNGWays.rows(data, DecodeOptions()) == whole, "chunks of \(chunkSize)")
            for pieceSize in side < 100 ? [1 << 20, 7] : [1 << 20, 1_000] {
                #expect(PNGWays.pieces(data, DecodeOptions(), size: pieceSize) == whole, "chunks of \(chunkSize)")
            }
        }
    }

    @Test(arguments: [Change.wrongChecksum, .noChecksum, .noEnd]) func `an end that may be missing is not looked at`(
        change: Change
    ) throws {
        let samples = Self.samples(side: 40)
        let options = DecodeOptions(allowsTruncated: true)
        let sound = PNGWays.whole(Self.file(side: 40, [Self.deflated(samples)]), options)
        // The last row of 240 bytes may differ if the stream has no end.
        guard case .pixels(_, _, let expected) = sound else { throw Missing() }
        let data = Self.file(side: 40, change.bodies(samples))
        for result in [PNGWays.whole(data, options), PNGWays.pieces(data, options, size: 9)] {
            guard case .pixels(_, _, let decoded) = result else { throw Missing() }
            #expect(decoded.prefix(expected.count - 240) == expected.prefix(expected.count - 240))
        }
    }

    @Test func `a frame with a wrong checksum is broken and the frame before it is not`() throws {
        let frames = try (0..<2).map { index in
            let pixels = try PixelBuffer.noise(.rgb8, width: 20, height: 20, seed: UInt64(index + 1))
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: 50)
        }
        let animation = AnimationContent(frames: frames)
        var file = PNGFile(try PNGCoder().encode(animation, as: .png, options: EncodeOptions()))
        let last = try #require(file.chunks.lastIndex { $0.type == "fdAT" })
        file.chunks[last].body[file.chunks[last].body.count - 2] ^= 4
        let decoder = try ImageDecoder(file.data, registry: SampleFiles.registry)
        #expect(try decoder.decode(options: DecodeOptions(frame: 0)).pixels.width == 20)
        let error = #expect(throws: CodingError.self) { try decoder.decode(options: DecodeOptions(frame: 1)) }
        #expect(error?.code == .corrupt)
    }

    // MARK: Transparent colours

    @Test(arguments: [1, 2, 4, 8, 16], [false, true]) func `a transparent colour counts with the bits of the depth`(
        depth: Int,
        hasHighBits: Bool
    ) throws {
        let maximum = 1 << depth - 1
        // With 16 bits, some samples differ only in the low byte.
        let values = depth == 16 ? [0x1234, 0x1235, 0x1334, 0xFFFF] : [0, 1, maximum / 2, maximum]
        for colorType in depth < 8 ? [0] : [0, 2] {
            for key in values {
                let channels = colorType == 0 ? 1 : 3
                let row = (0..<16).map { values[$0 % values.count] }
                let stored = hasHighBits && depth < 16 ? key | 1 << depth | 0x8000 : key
                var samples: [UInt8] = [0]
                samples += Self.packed(row.flatMap { [Int](repeating: $0, count: channels) }, depth)
                let color = (0..<channels).flatMap { _ in [UInt8(stored >> 8), UInt8(stored & 255)] }
                let data = PNGFile(chunks: [
                    .init(type: "IHDR", body: Self.header(16, 1, depth: depth, colorType: colorType)),
                    .init(type: "tRNS", body: color),
                    .init(type: "IDAT", body: Self.deflated(samples)),
                    .init(type: "IEND", body: []),
                ])
                .data
                let decoded = PNGReference.samples(of: try SampleFiles.decode(data).pixels)
                let alphas = stride(from: 3, to: 64, by: 4).map { decoded[$0] }
                let expected: [UInt8] = row.map { $0 == key ? 0 : 255 }
                #expect(alphas == expected, "type \(colorType), colour \(key)")
            }
        }
    }

    // MARK: Files

    private struct Missing: Error {}

    private static func samples(side: Int) -> [UInt8] {
        var generator = SeededGenerator(seed: UInt64(side))
        return (0..<side).flatMap { row -> [UInt8] in
            [UInt8(row % 5)] + (0..<3 * side).map { _ in UInt8.random(in: 0..<40, using: &generator) }
        }
    }

    private static func file(side: Int, _ bodies: [[UInt8]]) -> Data {
        let header = PNGFile.Chunk(type: "IHDR", body: Self.header(side, side, depth: 8, colorType: 2))
        let pixels = bodies.map { PNGFile.Chunk(type: "IDAT", body: $0) }
        return PNGFile(chunks: [header] + pixels + [PNGFile.Chunk(type: "IEND", body: [])]).data
    }

    private static func header(_ width: Int, _ height: Int, depth: Int, colorType: Int) -> [UInt8] {
        UInt32(width).bigEndianBytes + UInt32(height).bigEndianBytes + [UInt8(depth), UInt8(colorType), 0, 0, 0]
    }

    private static func pieces(_ bytes: [UInt8], _ size: Int) -> [[UInt8]] {
        guard size < bytes.count else { return [bytes] }
        return stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
    }

    /// Packs samples of `depth` bits into bytes, the leftmost sample in the highest bits.
    private static func packed(_ samples: [Int], _ depth: Int) -> [UInt8] {
        let bits = samples.flatMap { sample in (0..<depth).reversed().map { sample >> $0 & 1 } }
        return stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<start + 8].reduce(0) { $0 << 1 | UInt8($1) }
        }
    }

    private static func deflated(_ bytes: some Sequence<UInt8>, dictionary: [UInt8] = []) -> [UInt8] {
        var input = Array(bytes)
        var output = [UInt8](repeating: 0, count: input.count * 2 + 100)
        var state = z_stream()
        guard czlib_deflate_init(&state) == Z_OK else { return [] }
        if !dictionary.isEmpty { deflateSetDictionary(&state, dictionary, UInt32(dictionary.count)) }
        input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                state.next_in = input.baseAddress
                state.avail_in = UInt32(input.count)
                state.next_out = output.baseAddress
                state.avail_out = UInt32(output.count)
                _ = deflate(&state, Z_FINISH)
            }
        }
        output.removeLast(Int(state.avail_out))
        deflateEnd(&state)
        return output
    }
}
