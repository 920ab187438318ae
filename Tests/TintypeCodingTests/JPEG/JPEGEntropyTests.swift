// SPDX-License-Identifier: Apache-2.0

import CTintypeJPEG
import CTintypeJPEGWays
import FoundationEssentials
import Glibc
import Testing
import TintypeConformanceSupport
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Checks that our entropy decoder gives the same results as the library, and is not used if it might not.
@Suite(.computing, .timeLimit(.minutes(5))) struct JPEGEntropyTests {
    // MARK: The decoder

    /// The result of a decode.
    private struct Outcome: Equatable {
        var samples: [UInt8] = []
        var hasFailed = false
        var warningCount = 0
    }

    private static func decode(
        _ file: [UInt8],
        eighths: Int,
        isFancy: Bool = true,
        skipsAndCrops: Bool = false,
        usesOwn: Bool
    ) -> (outcome: Outcome, usedOwn: Bool) {
        let way = jpeg_way(
            eighths: CInt(eighths),
            is_fancy: isFancy,
            skips_and_crops: skipsAndCrops,
            uses_own_entropy: usesOwn
        )
        var outcome = jpeg_outcome()
        file.withUnsafeBufferPointer { jpeg_decode($0.baseAddress, $0.count, way, &outcome) }
        defer { free(outcome.pixels) }
        let samples = outcome.has_failed ? [] : Array(UnsafeBufferPointer(start: outcome.pixels, count: outcome.count))
        return (
            Outcome(samples: samples, hasFailed: outcome.has_failed, warningCount: outcome.warning_count),
            outcome.used_own_entropy
        )
    }

    /// Returns a file with `samples`, or with an image that has noisy and smooth parts.
    static func file(
        width: Int = 150,
        height: Int = 110,
        components: Int = 3,
        quality: Int = 85,
        across: Int = 1,
        down: Int = 1,
        restartInterval: Int = 0,
        hasOwnTables: Bool = false,
        samples: [UInt8]? = nil
    ) throws -> [UInt8] {
        var settings = cjpeg_settings(
            width: CInt(width),
            height: CInt(height),
            components: CInt(components),
            quality: CInt(quality),
            is_progressive: false,
            has_own_tables: hasOwnTables,
            restart_interval: CInt(restartInterval),
            horizontal_subsampling: CInt(across),
            vertical_subsampling: CInt(down),
            maximum_bytes: 1 << 24
        )
        var generator = SeededGenerator(seed: UInt64(quality))
        let samples =
            samples
            ?? (0..<width * height * components).map { index -> UInt8 in
                let column = index / components % width
                let noise = column > width / 2 ? Int.random(in: 0..<120, using: &generator) : 0
                return UInt8((column + index / width / components) % 130 + noise)
            }
        let created = cjpeg_encoder_create { false }
        let encoder = try #require(created)
        defer { cjpeg_encoder_free(encoder) }
        try #require(cjpeg_encoder_start(encoder, &settings) == .done)
        try #require(cjpeg_encoder_write_rows(encoder, samples, width * components, CInt(height)) == .done)
        try #require(cjpeg_encoder_finish(encoder) == .done)
        var count = 0
        let bytes = try #require(cjpeg_encoder_take(encoder, &count))
        defer { free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }

    @Test(arguments: [(1, 1), (2, 1), (1, 2), (2, 2)], [0, 1, 3])
    func `images are the same at every size`(factors: (across: Int, down: Int), restartInterval: Int) throws {
        for (quality, hasOwnTables) in [(20, false), (85, true), (100, false), (100, true)] {
            let file = try Self.file(
                quality: quality,
                across: factors.across,
                down: factors.down,
                restartInterval: restartInterval,
                hasOwnTables: hasOwnTables
            )
            for eighths in 1...8 {
                let (expected, _) = Self.decode(file, eighths: eighths, usesOwn: false)
                let (outcome, usedOwn) = Self.decode(file, eighths: eighths, usesOwn: true)
                #expect(usedOwn)
                #expect(outcome == expected, "\(quality), \(eighths)")
                #expect(!outcome.hasFailed && outcome.warningCount == 0)
            }
        }
    }

    @Test func `gray images are the same`() throws {
        let file = try Self.file(components: 1, quality: 90)
        for eighths in 1...8 {
            let (outcome, usedOwn) = Self.decode(file, eighths: eighths, usesOwn: true)
            #expect(usedOwn && outcome == Self.decode(file, eighths: eighths, usesOwn: false).outcome)
        }
    }

    /// Covers all sizes, interpolation, and skipped lines and columns.
    @Test(.enabled(if: Corpus.isRead)) func `files of the corpus are the same, and are warned of`() throws {
        var ownCount = 0
        for image in Corpus.images where image.format == "jpeg" {
            let file = Array(try image.data)
            guard file.count < 25_000 else { continue }
            for number in 0..<16 {
                let ways = (eighths: 1 << (number & 3), isFancy: number & 4 == 0, skipsAndCrops: number & 8 != 0)
                let (expected, _) = Self.decode(
                    file,
                    eighths: ways.eighths,
                    isFancy: ways.isFancy,
                    skipsAndCrops: ways.skipsAndCrops,
                    usesOwn: false
                )
                let (outcome, usedOwn) = Self.decode(
                    file,
                    eighths: ways.eighths,
                    isFancy: ways.isFancy,
                    skipsAndCrops: ways.skipsAndCrops,
                    usesOwn: true
                )
                #expect(outcome.samples == expected.samples, "\(image.path), \(ways)")
                #expect(outcome.hasFailed == expected.hasFailed, "\(image.path), \(ways)")
                #expect((outcome.warningCount > 0) == (expected.warningCount > 0), "\(image.path), \(ways)")
                if usedOwn { ownCount += 1 }
            }
        }
        #expect(ownCount > 300)
    }

    /// Damages the scan with markers, lost bytes and foreign bytes.
    ///
    /// If a marker interrupts a unit (MCU), the library keeps the part that it has read, so this unit may differ.
    @Test func `damaged files differ in one unit at most`() throws {
        let files = [
            try Self.file(across: 2, down: 2, restartInterval: 4), try Self.file(quality: 95, across: 2),
            try Self.file(restartInterval: 7, hasOwnTables: true),
        ]
        var generator = SeededGenerator(seed: 3)
        var differingCount = 0
        for number in 0..<400 {
            var file = files[number % files.count]
            let scan = try #require(Data(file).firstRange(of: Data([0xFF, 0xDA]))).upperBound + 12
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let offset = Int.random(in: scan..<file.count - 2, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: file[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
                case 1: file[offset] = 0xFF
                case 2: file[offset...offset + 1] = [0xFF, 0xD0 + UInt8.random(in: 0..<8, using: &generator)]
                default: file.removeSubrange(offset..<min(file.count - 2, offset + 20))
                }
            }
            let eighths = 1 << Int.random(in: 0...3, using: &generator)
            let (expected, _) = Self.decode(file, eighths: eighths, usesOwn: false)
            let (outcome, _) = Self.decode(file, eighths: eighths, usesOwn: true)
            #expect(outcome.hasFailed == expected.hasFailed)
            #expect(outcome.samples.count == expected.samples.count)
            let differing = zip(outcome.samples, expected.samples).count { $0 != $1 }
            // A unit has 16 by 16 pixels, and interpolation of colour affects a few more.
            #expect(differing <= 20 * 20 * 3 * eighths * eighths / 64)
            if differing > 0 { differingCount += 1 }
            // The library may overlook surplus bytes, but it always reports missing ones.
            #expect(outcome.warningCount > 0 || expected.warningCount == 0)
        }
        #expect(differingCount < 5)
    }

    // MARK: The coder

    /// Reports whether our entropy decoder was used, and returns the samples or the error code.
    private static func read(
        _ file: Data,
        divisor: Int = 8,
        allowsTruncated: Bool = false,
        _ shortcuts: JPEGCoder.Shortcuts
    ) throws -> (usedOwn: Bool, samples: [UInt8], failure: CodingError.Code?) {
        let limits = DecodingLimits()
        let header = try JPEGHeader(file, work: DecodeWork(limits))
        return try file.withUnsafeBytes { bytes in
            do {
                let reading = try JPEGReading(
                    bytes,
                    header,
                    divisor: divisor,
                    options: DecodeOptions(limits: limits, allowsTruncated: allowsTruncated),
                    shortcuts: shortcuts,
                    work: DecodeWork(limits)
                )
                let usedOwn = reading.usesOwnEntropy
                return (usedOwn, try reading.pixels().samples, nil)
            } catch let error as CodingError {
                return (false, [], error.code)
            }
        }
    }

    @Test func `images of 64 KiB and more have it, smaller ones have the library's`() throws {
        let large = Data(try Self.file(width: 500, height: 400, quality: 95))
        try #require(large.count > 80 << 10)
        let small = Data(try Self.file(width: 300, height: 200, quality: 95))
        try #require((32 << 10..<64 << 10).contains(small.count))
        for divisor in [1, 2, 4, 8] {
            let (usedOwn, samples, _) = try Self.read(large, divisor: divisor, .all)
            #expect(usedOwn)
            #expect(try samples == Self.read(large, divisor: divisor, []).samples)
            #expect(try !Self.read(small, divisor: divisor, .all).usedOwn)
            #expect(try Self.read(small, divisor: divisor, .entropyDecodingOfSmallFiles).usedOwn)
        }
        // Only the bytes of the scan count, not the bytes before it.
        var padded = small
        padded.insert(contentsOf: Data([0xFF, 0xFE, 0xFF, 0xFF]) + Data(count: 0xFFFD), at: 2)
        #expect(try !Self.read(padded, .all).usedOwn)
    }

    @Test func `it can be turned off`() async throws {
        let file = Data(try Self.file())
        #expect(try Self.read(file, .entropyDecodingOfSmallFiles).usedOwn)
        for shortcuts in [[], JPEGCoder.Shortcuts.scans] { #expect(try !Self.read(file, shortcuts).usedOwn) }
        #expect(JPEGCoder.Shortcuts.standard == .all)
        await #expect(processExitsWith: .success) {
            setenv("TINTYPE_JPEG_SHORTCUTS", "0", 1)
            #expect(JPEGCoder.Shortcuts.standard == [])
        }
    }

    @Test func `it is looked at before its first use, and left out where it errs`() throws {
        #expect(JPEGSelfCheck.passes(JPEGSelfCheck.decode))
        for divisor in [1, 4, 8] {
            let errs = JPEGSelfCheck.passes { file, size, usesOwn in
                guard var samples = JPEGSelfCheck.decode(file, divisor: size, usesOwnEntropy: usesOwn) else {
                    return nil
                }
                if usesOwn, size == divisor { samples[samples.count / 2] ^= 1 }
                return samples
            }
            #expect(!errs)
        }
        let fails = JPEGSelfCheck.passes { file, size, usesOwn in
            usesOwn ? nil : JPEGSelfCheck.decode(file, divisor: size, usesOwnEntropy: false)
        }
        #expect(!fails)
        let file = Data(try Self.file())
        let expected = try Self.read(file, [])
        let (usedOwn, samples, _) = try JPEGSelfCheck.$assumedVerdict.withValue(false) {
            try Self.read(file, .entropyDecodingOfSmallFiles)
        }
        #expect(!usedOwn && samples == expected.samples)
    }

    /// Our decoder leaves files without an end to the library, which notices the missing end at a byte of its own.
    @Test(arguments: [false, true]) func `files that are cut end as without it`(allowsTruncated: Bool) throws {
        let file = Data(try Self.file(width: 90, height: 60, across: 2, down: 2, restartInterval: 4))
        let start = try #require(file.firstRange(of: Data([0xFF, 0xDA]))).upperBound + 12
        let ends = Array(stride(from: start, to: file.count, by: 37)) + Array(file.count - 20...file.count)
        var ownCount = 0
        for end in ends {
            let cut = file.prefix(end)
            let expected = try Self.read(cut, divisor: 1, allowsTruncated: allowsTruncated, [])
            let outcome = try Self.read(cut, divisor: 1, allowsTruncated: allowsTruncated, .entropyDecodingOfSmallFiles)
            #expect(outcome.samples == expected.samples, "\(end)")
            #expect(outcome.failure == expected.failure, "\(end)")
            if outcome.usedOwn { ownCount += 1 }
            // The start of another image ends the scan as well as an end marker.
            let joined = cut + file
            let whole = try Self.read(joined, divisor: 1, allowsTruncated: allowsTruncated, [])
            let outcomeOfJoined = try Self.read(joined, divisor: 1, .entropyDecodingOfSmallFiles)
            #expect(outcomeOfJoined.usedOwn && outcomeOfJoined.failure == nil)
            #expect(zip(outcomeOfJoined.samples, whole.samples).count { $0 != $1 } <= 20 * 20 * 3)
        }
        #expect(ownCount == 1)
    }

    @Test(
        .enabled(if: Corpus.isRead),
        arguments: [
            "jpeg-progressive/3.jpg", "jpeg-exotic/testimgari.jpg",
        ]
    )
    func `other kinds are the library's`(path: String) throws {
        let file = try Data(contentsOf: Corpus.url(of: path))
        #expect(try !Self.read(file, .entropyDecodingOfSmallFiles).usedOwn)
    }
}
