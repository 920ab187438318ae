// SPDX-License-Identifier: Apache-2.0

import CTintypeZlib
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Compares our inflater with zlib for streams that break or end early.
@Suite(.computing, .timeLimit(.minutes(2))) struct PNGInflaterTests {
    /// The sizes of the input and output pieces.
    private static let ways = [(1 << 20, 1 << 20), (1, 1 << 20), (300, 97), (2_500, 5_000), (40_000, 131_072)]

    @Test(arguments: 0..<30) func `a damaged stream gives the bytes before its break, whatever the pieces`(
        seed: Int
    ) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        let stream = try Self.stream(&generator)
        for _ in 0..<4 {
            var damaged = stream
            // Change the first bytes as often as all others, because distances there can lead before the beginning.
            let reach = Bool.random(using: &generator) ? min(60, damaged.count) : damaged.count
            damaged[Int.random(in: 2..<reach, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
            let reference = Self.inflatedByZlib(damaged)
            let whole = Self.inflated(damaged, Self.ways[0], poison: 0)
            // zlib refuses an incomplete code at once, and our inflater only refuses a symbol that the code does not
            // have.
            #expect(whole.bytes.starts(with: reference.bytes))
            for (number, way) in Self.ways.enumerated() {
                #expect(Self.inflated(damaged, way, poison: UInt8(number + 1)) == whole, "pieces of \(way)")
            }
        }
    }

    @Test(arguments: 0..<30) func `a stream that is cut gives the same bytes, whatever the pieces`(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(1_000 + seed))
        let stream = try Self.stream(&generator)
        for _ in 0..<4 {
            let cut = Array(stream.prefix(Int.random(in: 2..<stream.count, using: &generator)))
            let reference = Self.inflatedByZlib(cut)
            let whole = Self.inflated(cut, Self.ways[0], poison: 0)
            #expect(!whole.isBroken && !reference.isBroken)
            // A table entry stands for up to three literals, and our inflater returns them when it has the entry's last
            // bit.
            #expect(reference.bytes.starts(with: whole.bytes) && reference.bytes.count - whole.bytes.count <= 2)
            for (number, way) in Self.ways.enumerated() {
                #expect(Self.inflated(cut, way, poison: UInt8(number + 1)) == whole, "pieces of \(way)")
            }
        }
    }

    @Test func `a whole stream with a wrong checksum is broken behind its last byte`() throws {
        var generator = SeededGenerator(seed: 7)
        var stream = try Self.stream(&generator)
        let content = Self.inflatedByZlib(stream).bytes
        stream[stream.count - 1] ^= 1
        for way in Self.ways {
            #expect(Self.inflated(stream, way, poison: 9) == Outcome(bytes: content, isBroken: true))
        }
    }

    struct Outcome: Equatable {
        var bytes: [UInt8] = []
        var isBroken = false
    }

    /// Returns deflated bytes, similar to text, with runs and with repeats near and far, at a random level.
    private static func stream(_ generator: inout SeededGenerator) throws -> [UInt8] {
        var content: [UInt8] = []
        let count = Int.random(in: 200...40_000, using: &generator)
        let values = UInt8.random(in: 2...250, using: &generator)
        while content.count < count {
            if content.count > 10, Int.random(in: 0..<3, using: &generator) > 0 {
                let distance = Int.random(in: 1...min(content.count, 32_768), using: &generator)
                for _ in 0..<Int.random(in: 3...258, using: &generator) {
                    content.append(content[content.count - distance])
                }
            } else {
                for _ in 0..<Int.random(in: 1...30, using: &generator) {
                    content.append(UInt8.random(in: 0..<values, using: &generator))
                }
            }
        }
        var size = compressBound(UInt(content.count))
        var stream = [UInt8](repeating: 0, count: Int(size))
        let level = CInt.random(in: 1...9, using: &generator)
        try #require(compress2(&stream, &size, content, UInt(content.count), level) == Z_OK)
        return Array(stream.prefix(Int(size)))
    }

    private static func inflated(_ stream: [UInt8], _ way: (input: Int, output: Int), poison: UInt8) -> Outcome {
        var outcome = Outcome()
        guard let inflater = try? PNGInflater() else { return outcome }
        var output = [UInt8](repeating: poison, count: way.output)
        var start = 0
        repeat {
            let end = min(stream.count, start + way.input)
            do {
                let (used, count) = try stream[start..<end].withUnsafeBytes { piece in
                    var input = piece
                    let count = try output.withUnsafeMutableBytes { try inflater.inflate(&input, into: $0) }
                    return (piece.count - input.count, count)
                }
                outcome.bytes += output.prefix(count)
                start += used
                if used == 0, count == 0 { break }
            } catch {
                outcome.isBroken = true
            }
        } while !outcome.isBroken && !inflater.isFinished && (start < stream.count || inflater.isAhead)
        if !outcome.isBroken, !inflater.isFinished {
            var nothing = UnsafeRawBufferPointer(start: nil, count: 0)
            do {
                _ = try output.withUnsafeMutableBytes { try inflater.inflate(&nothing, into: $0) }
            } catch {
                outcome.isBroken = true
            }
        }
        return outcome
    }

    private static func inflatedByZlib(_ stream: [UInt8]) -> Outcome {
        var outcome = Outcome(bytes: [UInt8](repeating: 0, count: 1 << 20))
        var state = z_stream()
        var stream = stream
        guard czlib_inflate_init(&state) == Z_OK else { return outcome }
        stream.withUnsafeMutableBufferPointer { input in
            outcome.bytes.withUnsafeMutableBufferPointer { output in
                state.next_in = input.baseAddress
                state.avail_in = UInt32(input.count)
                state.next_out = output.baseAddress
                state.avail_out = UInt32(output.count)
                let code = inflate(&state, Z_NO_FLUSH)
                outcome.isBroken = code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR
            }
        }
        outcome.bytes.removeLast(Int(state.avail_out))
        inflateEnd(&state)
        return outcome
    }
}
