// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Checks that rows are the same whether another lane inflates them or not.
@Suite(.waiting, .timeLimit(.minutes(5))) struct PNGAheadTests {
    /// The result of reading a file.
    private struct Outcome: Equatable, Sendable {
        var rows: [UInt8] = []
        var failure: CodingError.Code?
    }

    /// Reads all rows, or the first `rowCount`, and uses `ahead` as the lane that makes pixels would.
    private static func read(_ data: Data, rowCount: Int = .max, _ ahead: PNGAhead?) throws -> Outcome {
        var outcome = Outcome()
        let limits = DecodingLimits()
        do {
            let header = try PNGHeader(data, .wholeFile, work: DecodeWork(limits, format: .png))
            try data.withUnsafeBytes { bytes in
                defer { ahead?.close() }
                let rows = try PNGRowSource(
                    bytes,
                    header: header,
                    isLenient: false,
                    ahead: ahead,
                    work: DecodeWork(limits, format: .png)
                )
                var row = [UInt8](repeating: 0, count: rows.layout.planes[0].usedBytesPerRow)
                for _ in 0..<min(rowCount, rows.layout.height) {
                    try row.withUnsafeMutableBytes { try rows.readRow(into: $0) }
                    outcome.rows += row
                }
            }
        } catch let error as CodingError {
            outcome.failure = error.code
        }
        return outcome
    }

    /// Reads rows while another lane helps.
    private static func readTogether(
        _ data: Data,
        rowCount: Int = .max,
        on lanes: DecodeLanes,
        until isWanted: @escaping @Sendable () -> Bool = { false }
    ) async throws -> Outcome {
        let ahead = try self.ahead(for: data)
        await until { lanes.idleCount == 2 }
        return try await lanes.runTogether(
            helperCount: 1,
            reserving: { 0 },
            help: { _ in ahead.help(until: isWanted) },
            { try Self.read(data, rowCount: rowCount, ahead) }
        )
    }

    private static func ahead(for data: Data) throws -> PNGAhead {
        let layout = try PNGHeader(data, .wholeFile, work: DecodeWork(DecodingLimits())).layout
        return PNGAhead(lineByteCount: layout.byteCount(ofLine: layout.width) + 1)
    }

    /// Returns a file of several strips, whose last strip is not full.
    private static func file(
        _ format: PixelFormat,
        width: Int = 257,
        height: Int = 701,
        quietColumns: Int = 100
    ) throws -> Data {
        let pixels = try PixelBuffer.make(format, width: width, height: height) { column, row, channel in
            UInt8(truncatingIfNeeded: column > quietColumns ? column &* row &+ channel : row / 3)
        }
        return try SampleFiles.encode(pixels, as: .png)
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8]) func `rows are the same`(format: PixelFormat) async throws {
        let data = try Self.file(format)
        let expected = try Self.read(data, nil)
        #expect(expected.failure == nil && expected.rows.count == 257 * 701 * format.channelCount)
        #expect(try Self.read(data, Self.ahead(for: data)) == expected)
        let lanes = DecodeLanes(count: 2)
        for _ in 0..<5 { #expect(try await Self.readTogether(data, on: lanes) == expected) }
        // The helping lane leaves at once, or on the way.
        for count in [0, 1, 2, 5] {
            let looks = Locked(0)
            let outcome = try await Self.readTogether(data, on: lanes) { @Sendable in
                looks.withLock {
                    $0 += 1
                    return $0 > count
                }
            }
            #expect(outcome == expected)
        }
    }

    /// A strip has at least one scanline, even if the scanline is longer than a strip.
    @Test func `long rows are the same`() async throws {
        let data = try Self.file(.rgba8, width: 33_000, height: 3)
        let expected = try Self.read(data, nil)
        #expect(expected.rows.count == 33_000 * 3 * 4)
        #expect(try await Self.readTogether(data, on: DecodeLanes(count: 2)) == expected)
    }

    /// The strip ends within the damaged row.
    @Test func `a break within a long row is told as without help`() throws {
        var png = PNGFile(try Self.file(.rgba8, width: 33_000, height: 3, quietColumns: 32_900))
        let index = try #require(png.chunks.firstIndex { $0.type == "IDAT" })
        var failures: Set<CodingError.Code> = []
        for share in 1..<10 {
            let file = png
            let place = png.chunks[index].body.count * share / 10
            for offset in 0..<8 { png.chunks[index].body[place + offset] = 0xFF }
            let expected = try Self.read(png.data, nil)
            #expect(try Self.read(png.data, Self.ahead(for: png.data)).failure == expected.failure)
            if let failure = expected.failure { failures.insert(failure) }
            png = file
        }
        #expect(failures.contains(.corrupt))
    }

    /// Files that are cut, changed, changed with a correct checksum, or whose stream ends too early.
    @Test(arguments: 0..<4) func `damaged files end as without it`(kind: Int) async throws {
        let file = try Self.file(.gray8, width: 400, height: 1_000, quietColumns: 380)
        let lanes = DecodeLanes(count: 2)
        var generator = SeededGenerator(seed: UInt64(kind))
        var failureCount = 0
        for number in 0..<8 {
            var png = PNGFile(file)
            let index = try #require(png.chunks.firstIndex { $0.type == "IDAT" })
            if kind == 2 {
                png.chunks[index].body[Int.random(in: 2..<png.chunks[index].body.count, using: &generator)] ^= 0x10
            }
            if kind == 3 {
                let most = png.chunks[index].body.count / 2
                png.chunks[index].body.removeLast(Int.random(in: 1..<most, using: &generator))
            }
            if number % 2 == 0 {
                let body = png.chunks[index].body
                png.chunks[index].body = Array(body.prefix(body.count / 2))
                png.chunks.insert(
                    PNGFile.Chunk(type: "IDAT", body: Array(body.dropFirst(body.count / 2))),
                    at: index + 1
                )
            }
            var data = png.data
            if kind == 0 { data.removeLast(Int.random(in: 1..<data.count - 100, using: &generator)) }
            if kind == 1 { data[Int.random(in: 41..<data.count, using: &generator)] ^= 4 }
            let expected = try Self.read(data, nil)
            let outcomes = [try Self.read(data, Self.ahead(for: data)), try await Self.readTogether(data, on: lanes)]
            for outcome in outcomes {
                #expect(outcome.failure == expected.failure)
                // An image of this size is inflated as a whole without help, so the decode fails before its first row.
                #expect(outcome.rows == expected.rows || expected.failure != nil && expected.rows.isEmpty)
            }
            #expect(outcomes[0] == outcomes[1])
            if expected.failure != nil { failureCount += 1 }
        }
        #expect(failureCount > 2)
    }

    @Test func `a lane that helps ends when no more rows are read`() async throws {
        let data = try Self.file(.rgba8)
        let expected = try Self.read(data, rowCount: 3, nil)
        #expect(try await Self.readTogether(data, rowCount: 3, on: DecodeLanes(count: 2)) == expected)
    }

    @Test func `only large images that come row by row are inflated ahead`() throws {
        let encoded = try EncodedPNG(Self.file(.rgb8), limits: DecodingLimits())
        #expect(encoded.makeAhead(options: DecodeOptions()) == nil)
        var file = PNGFile(declaring: 2_600, 2_600)
        file.insert("IDAT", [0x78, 1])
        let large = try EncodedPNG(file.data, limits: DecodingLimits())
        #expect(large.makeAhead(options: DecodeOptions()) != nil)
        #expect(large.makeAhead(options: DecodeOptions(allowsTruncated: true)) == nil)
    }
}
