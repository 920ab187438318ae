// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Checks that every way to read a damaged JPEG reports the same damage.
@Suite(.computing, .timeLimit(.minutes(5))) struct JPEGDamageTests {
    /// The error, or the damage of the decoded image.
    private enum Verdict: Equatable {
        case refused(CodingError.Code)
        case accepted(ImageDamage)
    }

    private static let limits = DecodingLimits(maximumPixels: 4_000_000)

    private static func verdict(_ read: () throws -> ImageDamage?) throws -> Verdict? {
        do {
            return try read().map { .accepted($0) }
        } catch let error as CodingError {
            // The file may be intact even if its coefficients cannot be changed without loss.
            return error.code == .notLossless ? nil : .refused(error.code)
        }
    }

    /// Returns the verdicts of all ways to read a file strictly, with the name of each way.
    private static func verdicts(of data: Data) throws -> [(way: String, verdict: Verdict)] {
        var verdicts: [(way: String, verdict: Verdict)] = []
        func add(_ way: String, _ read: () throws -> ImageDamage?) throws {
            if let verdict = try self.verdict(read) { verdicts.append((way, verdict)) }
        }
        let ways: [(String, JPEGCoder.Shortcuts)] = [
            ("libjpeg", []), ("shortcuts", .all), ("own", [.scans, .entropyDecodingOfSmallFiles]),
        ]
        for (name, shortcuts) in ways {
            for divisor in [1, 2, 4, 8] {
                try add("\(name) 1/\(divisor)") {
                    let encoded = try EncodedJPEG(data, limits: self.limits, shortcuts: shortcuts)
                    return try encoded.decode(options: self.options(encoded, divisor)).image.damage
                }
            }
            try add("\(name) rows") {
                let encoded = try EncodedJPEG(data, limits: self.limits, shortcuts: shortcuts)
                return try encoded.withRows(options: self.options(encoded, 1)) { rows, _, _ in
                    var row = [UInt8](repeating: 0, count: rows.layout.planes[0].bytesPerRow)
                    for _ in 0..<rows.layout.height { try row.withUnsafeMutableBytes { try rows.readRow(into: $0) } }
                    return rows.damage
                }
            }
        }
        for size in [1, 97, 4_096] where size * 40_000 > data.count {
            try add("in pieces of \(size)") {
                let decoder = JPEGIncrementalDecoder(options: DecodeOptions(limits: self.limits))
                for start in stride(from: 0, to: data.count, by: size) {
                    try decoder.append(data.slice(from: start, to: start + size))
                }
                return try decoder.finish().image.damage
            }
        }
        for coding in [JPEGTransform.Coding.standardTables, .optimizedTables, .progressive] {
            let transform = JPEGTransform(turn: .transpose, coding: coding)
            try add("transposed, \(coding)") { try transform.apply(to: data, limits: self.limits).damage }
        }
        return verdicts
    }

    private static func options(_ encoded: EncodedJPEG, _ divisor: Int) -> DecodeOptions {
        let header = encoded.header
        return DecodeOptions(
            limits: self.limits,
            sufficientSize: PixelSize(
                width: max(1, header.pixelWidth / divisor),
                height: max(1, header.pixelHeight / divisor)
            )
        )
    }

    /// Describes the verdicts of a file if they differ.
    ///
    /// Ignores two differences. libjpeg's fast loop reads invalid codes as zeros without a warning. A decode to an
    /// eighth of the size does not read the scans that it does not need.
    private static func disagreement(_ data: Data) throws -> String? {
        let verdicts = try self.verdicts(of: data)
        guard case .accepted(var damage) = verdicts.first?.verdict else {
            return verdicts.allSatisfy { $0.verdict == verdicts.first?.verdict } ? nil : "\(verdicts)"
        }
        damage.remove(.invalidCodes)
        let hasScans = try JPEGHeader(data, work: DecodeWork(self.limits)).hasScans
        let agree = verdicts.allSatisfy { way, verdict in
            guard case .accepted(var other) = verdict else { return false }
            other.remove(.invalidCodes)
            return other == damage || hasScans && way.hasSuffix("1/8") && other.isSubset(of: damage)
        }
        return agree ? nil : "\(verdicts)"
    }

    @Test(.enabled(if: Corpus.isRead)) func `all ways to read a file of the corpus agree`() throws {
        var damagedCount = 0
        for image in Corpus.images where image.format == "jpeg" {
            let data = try image.data
            // Check the header against the limits first.
            let decoder = try? ImageDecoder(data, registry: SampleFiles.registry, limits: Self.limits)
            guard data.count < 100_000, decoder != nil else { continue }
            #expect(try Self.disagreement(data) == nil, "\(image.path)")
            if case .accepted(let damage) = try Self.verdicts(of: data).first?.verdict, !damage.isEmpty {
                damagedCount += 1
            }
        }
        #expect(damagedCount > 0)
    }

    private static let samples: [@Sendable () throws -> Data] = [
        { Data(try JPEGEntropyTests.file(across: 2, down: 2)) },
        { Data(try JPEGEntropyTests.file(across: 2, down: 2, restartInterval: 4)) },
        { Data(try JPEGEntropyTests.file(components: 1, quality: 60, hasOwnTables: true)) },
        { Data(try JPEGEntropyTests.file(restartInterval: 7, hasOwnTables: true)) },
        {
            let image = Image(pixels: try .noise(.rgb8, width: 60, height: 50))
            return try JPEGCoder().encode(image, as: .jpeg, options: EncodeOptions(quality: 70, isProgressive: true))
        },
    ]

    /// Returns a file with one kind of damage.
    ///
    /// The kinds are: cut near the end, cut, a flipped bit, a foreign marker, lost bytes, foreign bytes instead of the
    /// end.
    private static func damaged(
        _ original: Data,
        kind: Int,
        scan: Int,
        by generator: inout SeededGenerator
    ) -> Data {
        var data = original
        let offset = Int.random(in: scan..<data.count - 2, using: &generator)
        switch kind {
        case 0: data.removeLast(Int.random(in: 1..<14, using: &generator))
        case 1: data = data.prefix(offset)
        case 2: data[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 3: data.replaceSubrange(offset...offset + 1, with: [0xFF, .random(in: 0...255, using: &generator)])
        case 4: data.removeSubrange(offset..<min(data.count - 2, offset + .random(in: 1..<400, using: &generator)))
        default:
            data.removeLast(Int.random(in: 2..<60, using: &generator))
            data += [UInt8](repeating: offset % 2 == 0 ? 0 : 0x41, count: .random(in: 1..<40, using: &generator))
        }
        return data
    }

    @Test(arguments: 0..<5) func `all ways to read a damaged file agree`(_ index: Int) throws {
        let original = try Self.samples[index]()
        #expect(try Self.verdicts(of: original).allSatisfy { $0.verdict == .accepted([]) })
        let scan = try #require(original.firstRange(of: Data([0xFF, 0xDA]))).upperBound + 12
        var generator = SeededGenerator(seed: UInt64(index) + 31)
        var refusedCount = 0
        var damagedCount = 0
        for round in 0..<60 {
            let data = Self.damaged(original, kind: round % 6, scan: scan, by: &generator)
            #expect(try Self.disagreement(data) == nil, "\(round)")
            switch try #require(try Self.verdicts(of: data).first).verdict {
            // A file without a marker after the scan counts as truncated, even if all data is present.
            case .refused(let code):
                refusedCount += 1
                #expect(code == .truncated || round % 6 > 1)
            case .accepted(let damage):
                #expect(round % 6 > 1)
                if !damage.isEmpty { damagedCount += 1 }
            }
        }
        #expect(refusedCount >= 20 && damagedCount >= 3)
    }

    /// Returns a file whose scan is interrupted by a marker.
    ///
    /// The rest of the scan is lost, and the end marker is missing too.
    private static func interrupted() throws -> Data {
        var data = Data(try JPEGEntropyTests.file(across: 2, down: 2))
        data.removeLast(2)
        let middle = data.count * 3 / 4
        data.replaceSubrange(middle...middle + 3, with: [0xFF, 0xE5, 0xFF, 0xFF])
        return data
    }

    @Test func `a scan that a marker interrupts is shown with a warning, also without an end marker`() throws {
        let data = try Self.interrupted()
        #expect(try Self.verdicts(of: data).allSatisfy { $0.verdict == .accepted(.missingData) })
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(try decoder.decode().damage == .missingData)
        // If only markers change, the transform decodes the file to judge the missing end marker.
        #expect(try JPEGTransform(metadata: .none).apply(to: data).damage == .missingData)
        #expect(try decoder.decode().description.contains("damaged (missing data)"))
    }

    @Test func `a file without the marker behind its scan is truncated, however its metadata changes`() throws {
        let data = Data(try JPEGEntropyTests.file(across: 2, down: 2)).dropLast(2)
        for transform in [JPEGTransform(metadata: .none), JPEGTransform(turn: .rotate90)] {
            JPEGTransformTests.expect(.truncated) { try transform.apply(to: data) }
        }
        let lenient = try JPEGTransform(turn: .rotate90, allowsTruncated: true).apply(to: data)
        #expect(lenient.damage.contains(.missingData))
        #expect(try JPEGTransform(metadata: .none, allowsTruncated: true).apply(to: data).damage == .missingData)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        #expect(try decoder.decode(options: DecodeOptions(allowsTruncated: true)).damage == .missingData)
    }

    @Test func `bands find the damage that one decoder finds`() throws {
        var data = Data(try JPEGEntropyTests.file(width: 400, height: 300, across: 2, down: 2, restartInterval: 25))
        let encoded = try EncodedJPEG(data, limits: Self.limits, shortcuts: [])
        let intact = try #require(try encoded.bands(options: DecodeOptions(), pixelsPerBand: 400 * 16))
        var rows = [UInt8](repeating: 0, count: intact.layout.byteCount)
        try rows.withUnsafeMutableBytes { try intact.decode(into: $0, isFirst: true, until: { false }) }
        #expect(intact.damage == [])
        // Remove half of the data between two restart markers.
        let marker = try #require(data.firstRange(of: Data([0xFF, 0xD3]))).upperBound
        let next = try #require(data[marker...].firstRange(of: Data([0xFF, 0xD4]))).lowerBound
        data.removeSubrange((marker + next) / 2..<next)
        let damaged = try EncodedJPEG(data, limits: Self.limits, shortcuts: [])
        let bands = try #require(try damaged.bands(options: DecodeOptions(), pixelsPerBand: 400 * 16))
        try rows.withUnsafeMutableBytes { try bands.decode(into: $0, isFirst: true, until: { false }) }
        #expect(bands.damage == .missingData)
        #expect(try damaged.decode(options: DecodeOptions()).image.damage == .missingData)
    }
}
