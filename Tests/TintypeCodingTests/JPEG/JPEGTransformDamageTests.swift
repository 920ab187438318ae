// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// JPEGs that are truncated, damaged or not supported lead to typed errors at most.
@Suite(.computing, .timeLimit(.minutes(5))) struct JPEGTransformDamageTests {
    private static let transforms = [
        JPEGTransform(metadata: .none), JPEGTransform(turn: .rotate90, coding: .standardTables),
        JPEGTransform(turn: .flipVertical, coding: .optimizedTables, metadata: .carriedOver),
        JPEGTransform(
            turnsUpright: true,
            crop: PixelRectangle(x: 1, y: 9, width: 4, height: 3),
            isGray: true,
            coding: .progressive,
            allowsTruncated: true
        ),
        JPEGTransform(turn: .transverse, allowsTruncated: true),
    ]

    /// Applies each transform, and checks that a result is a JPEG of the reported size.
    private static func check(_ data: Data, _ limits: DecodingLimits = DecodingLimits(maximumPixels: 20_000)) throws {
        for transform in self.transforms {
            do {
                let result = try transform.apply(to: data, limits: limits)
                let header = try JPEGCoder().open(result.data).header
                #expect((header.pixelWidth, header.pixelHeight) == (result.width, result.height))
                #expect(result.data.count <= limits.maximumEncodedBytes)
            } catch is CodingError {}
        }
    }

    private static func sample(isProgressive: Bool) throws -> Data {
        let pixels = try PixelBuffer.noise(.rgb8, width: 37, height: 29)
        var options = EncodeOptions(quality: 70, isProgressive: isProgressive)
        options.metadata.exif = EXIFBlock.camera().data
        return try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: options)
    }

    @Test(arguments: [false, true], 0..<4) func `changed bytes are an error at most`(
        isProgressive: Bool,
        part: Int
    ) throws {
        let original = try Self.sample(isProgressive: isProgressive)
        var generator = SeededGenerator(seed: UInt64(part) + 21)
        for round in 0..<150 {
            var data = original
            for _ in 0...round % 4 {
                data[Int.random(in: 0..<data.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            if round % 5 == 0 { data = data.prefix(Int.random(in: 0...data.count, using: &generator)) }
            try Self.check(data)
        }
    }

    @Test(arguments: [false, true]) func `a cut file is refused, or written as far as it is there`(
        isProgressive: Bool
    ) throws {
        let data = try Self.sample(isProgressive: isProgressive)
        let scan = try #require(data.firstRange(of: Data([0xFF, 0xDA]))).upperBound + 20
        for end in stride(from: scan, to: data.count - 2, by: 13) {
            for coding in [JPEGTransform.Coding.stored, .standardTables, .optimizedTables, .progressive] {
                var transform = JPEGTransform(coding: coding, metadata: .none)
                JPEGTransformTests.expect(.truncated) { try transform.apply(to: data.prefix(end)) }
                transform.allowsTruncated = true
                let result = try transform.apply(to: data.prefix(end))
                #expect(result.data.suffix(2) == Data([0xFF, 0xD9]))
                let same = try #require(JPEGCoefficients(result.data))
                // libjpeg does not read a file that is cut within a table.
                if let source = JPEGCoefficients(data.prefix(end)) { #expect(same.difference(from: source) == nil) }
            }
        }
        for end in stride(from: 0, to: scan - 20, by: 7) {
            let error = #expect(throws: CodingError.self) {
                try JPEGTransform(turn: .transpose).apply(to: data.prefix(end))
            }
            #expect([.truncated, .corrupt].contains(error?.code))
        }
    }

    /// A marker that does not exist, such as 0F, or TEM (01) is damage of the data, which ends at the next restart.
    @Test(arguments: [UInt8(0x0F), 0x01, 0xBF], [UInt8(0), 200])
    func `a wrong marker in a scan costs no data behind the next restart`(marker: UInt8, length: UInt8) throws {
        var data = Data(try JPEGEntropyTests.file(width: 100, height: 100, components: 1, restartInterval: 13))
        let restart = try #require(data.firstRange(of: Data([0xFF, 0xD1]))).lowerBound
        // Behind an existing marker, its length would follow: here it is in the file or beyond its end.
        data.replaceSubrange(restart - 6..<restart - 2, with: [0xFF, marker, length, 40])
        for hasEnd in [true, false] {
            if !hasEnd { data.removeLast(2) }
            let source = try #require(JPEGCoefficients(data))
            for coding in [JPEGTransform.Coding.stored, .standardTables, .optimizedTables] {
                for turn in [JPEGTransform.Turn.none, .rotate270] where coding != .stored || turn == .none {
                    let transform = JPEGTransform(turn: turn, coding: coding, metadata: .none, allowsTruncated: true)
                    let result = try transform.apply(to: data)
                    let changed = try #require(JPEGCoefficients(result.data))
                    let fault = changed.difference(from: source, turned: turn)
                    #expect(fault == nil, "\(coding), \(turn), with its end: \(hasEnd)")
                }
            }
        }
    }

    /// Changes fields of the frame header: the process, the precision, a side, the number of components.
    @Test(arguments: [
        (1, UInt8(0xC3), CodingError.Code.unsupportedFeature), (1, 0xC5, .unsupportedFeature),
        (4, 12, .unsupportedFeature), (5, 0xFF, .tooManyPixels), (9, 2, .unsupportedFeature),
        (9, 0, .unsupportedFeature),
    ])
    func `what cannot be read is named`(_ place: Int, _ value: UInt8, _ code: CodingError.Code) throws {
        var data = try SampleFiles.smooth(.jpeg, width: 16, height: 16)
        let frame = try #require(data.firstRange(of: Data([0xFF, 0xC0]))).lowerBound
        data[frame + place] = value
        if place == 5 { data[frame + 7] = 0xFF }
        let limits = DecodingLimits(maximumSide: 70_000)
        JPEGTransformTests.expect(code) { try JPEGTransform(turn: .rotate90).apply(to: data, limits: limits) }
    }

    @Test(arguments: [ImageFormat.png, .webp, .gif]) func `only a JPEG is changed`(format: ImageFormat) throws {
        let data = try SampleFiles.smooth(format)
        JPEGTransformTests.expect(.unsupportedFormat) { try JPEGTransform(turn: .rotate90).apply(to: data) }
        JPEGTransformTests.expect(.corrupt) { try JPEGTransform(turn: .rotate90).apply(to: Data("text".utf8)) }
    }

    /// The coefficients have twelve bits, and the standard's tables have no code for them.
    ///
    /// libjpeg reads them without a warning from files of several scans.
    @Test func `coefficients out of range are no silent damage`() throws {
        let data = SlowFiles.wideCoefficients()
        let source = try #require(JPEGCoefficients(data))
        for coding in [JPEGTransform.Coding.standardTables, .optimizedTables, .progressive] {
            for turn in [JPEGTransform.Turn.none, .transpose] {
                do {
                    let result = try JPEGTransform(turn: turn, coding: coding).apply(to: data)
                    #expect(try #require(JPEGCoefficients(result.data)).difference(from: source, turned: turn) == nil)
                } catch let error as CodingError {
                    #expect(error.code == .notLossless)
                }
            }
        }
    }

    @Test(
        .enabled(if: Corpus.isRead),
        arguments: [
            "jpeg", "jpeg-cmyk", "jpeg-exotic", "jpeg-orientation", "jpeg-progressive", "jpeg-corrupt",
        ]
    )
    func `small images of the corpus keep their coefficients`(folder: String) throws {
        var check = LosslessCheck()
        let images = Corpus.images(in: folder) { image in
            image.format == "jpeg" && (image.size.map { $0.width * $0.height <= 20_000 } ?? false)
        }
        for image in images {
            let data = try image.data
            guard data.count <= 20_000 else { continue }
            #expect(try check.faults(of: data) == [], "\(image.path)")
        }
    }

    @Test(.enabled(if: Corpus.isRead)) func `files of fuzzers are an error at most`() throws {
        let limits = DecodingLimits(maximumPixels: 1_000_000, maximumWork: 20_000_000)
        for (index, image) in Corpus.images(in: "jpeg-fuzz").enumerated() where index % 8 == 0 {
            try Self.check(image.data, limits)
        }
    }
}

extension SlowFiles {
    /// Returns a gray image of two blocks, with coefficients that are larger than a baseline image can have.
    static func wideCoefficients() -> Data {
        var data = self.flatJPEG(16, 8)
        // Codes of one bit: for the first coefficient 0, for the others 12 bits without a run of zeros (0x0C).
        guard let table = data.firstRange(of: Data([0xFF, 0xC4, 0, 20, 0x10])),
            let scan = data.firstRange(of: Data([0xFF, 0xDA]))
        else { return data }
        data[table.lowerBound + 4 + 17] = 0x0C
        let end = scan.lowerBound + 2 + 8
        data.removeSubrange(end...)
        // For each block, a difference of 0, then 63 times a code and twelve ones.
        var bits: [UInt8] = []
        for _ in 0..<2 {
            bits.append(0)
            for _ in 0..<63 { bits += [0] + [UInt8](repeating: 1, count: 12) }
        }
        for start in stride(from: 0, to: bits.count, by: 8) {
            let byte = (start..<start + 8).reduce(UInt8(0)) { $0 << 1 | ($1 < bits.count ? bits[$1] : 1) }
            data += byte == 0xFF ? [0xFF, 0] : [byte]
        }
        return data + [0xFF, 0xD9]
    }
}
