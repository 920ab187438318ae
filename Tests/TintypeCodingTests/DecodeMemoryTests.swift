// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Checks that each kind of decode takes as much memory as the memory gate counts for it, for every coder.
@Suite(.computing, .enabled(if: AllocatedMemory.isMeasured), .timeLimit(.minutes(10))) struct DecodeMemoryTests {
    /// An image and the kinds of decode to test with it.
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let make: @Sendable () throws -> Data
        var kinds: [DecodeKind] = [.image, .rows, .incremental]
        var options = DecodeOptions()
    }

    private static func jpeg(_ format: PixelFormat, isProgressive: Bool = false) throws -> Data {
        var options = EncodeOptions(quality: 60)
        options.isProgressive = isProgressive
        let image = Image(pixels: try Self.flat(format, width: 4_000, height: 3_000))
        return try JPEGCoder().encode(image, as: .jpeg, options: options)
    }

    private static func flat(_ format: PixelFormat, width: Int, height: Int) throws -> PixelBuffer {
        try PixelBuffer(
            PixelLayout(format: format, width: width, height: height),
            fillingUnsafely: { $0.initializeMemory(as: UInt8.self, repeating: 100) }
        )
    }

    private static func png(_ depth: UInt8, _ colorType: UInt8, isInterlaced: Bool = false) throws -> Data {
        let channels = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][colorType] ?? 1
        let (width, height) = isInterlaced || depth == 16 || colorType == 3 ? (1_600, 1_200) : (4_000, 3_000)
        var file = SlowFiles.flatPNG(width, height)
        // Both sides are multiples of eight, so each pass has whole lines.
        let lineCount = isInterlaced ? height / 8 * 15 : height
        let count = height * width * channels * Int(depth) / 8 + lineCount
        file.chunks[0].body[8] = depth
        file.chunks[0].body[9] = colorType
        file.chunks[0].body[12] = isInterlaced ? 1 : 0
        file.chunks[1].body = Array(SlowFiles.zeros(count))
        if colorType == 3 { file.insert("PLTE", [1, 2, 3, 4, 5, 6]) }
        return file.data
    }

    private static let cases = [
        Case(testDescription: "JPEG, gray", make: { try Self.jpeg(.gray8) }),
        Case(testDescription: "JPEG, RGB", make: { try Self.jpeg(.rgb8) }),
        Case(testDescription: "JPEG, RGB, progressive", make: { try Self.jpeg(.rgb8, isProgressive: true) }),
        Case(testDescription: "JPEG, gray, progressive", make: { try Self.jpeg(.gray8, isProgressive: true) }),
        Case(
            testDescription: "JPEG, a quarter",
            make: { try Self.jpeg(.rgb8) },
            kinds: [.image],
            options: DecodeOptions(sufficientSize: PixelSize(width: 1_000, height: 700))
        ),
        Case(
            testDescription: "JPEG, progressive, an eighth",
            make: { try Self.jpeg(.rgb8, isProgressive: true) },
            kinds: [.image, .rows],
            options: DecodeOptions(sufficientSize: PixelSize(width: 400, height: 300))
        ),
        Case(testDescription: "JPEG, CMYK", make: { SlowFiles.flatJPEG(4_000, 3_000, componentCount: 4) }),
        Case(
            testDescription: "JPEG, CMYK with a profile for RGB",
            make: {
                let profile = SlowFiles.profileSegment(ICCSample.profile(isGray: false))
                return SlowFiles.flatJPEG(4_000, 3_000, componentCount: 4, after: profile)
            }
        ),
        Case(testDescription: "PNG, gray", make: { try Self.png(8, 0) }),
        Case(testDescription: "PNG, RGB", make: { try Self.png(8, 2) }),
        Case(testDescription: "PNG, RGBA", make: { try Self.png(8, 6) }),
        Case(testDescription: "PNG, palette", make: { try Self.png(8, 3) }),
        Case(testDescription: "PNG, 16 bits", make: { try Self.png(16, 6) }),
        Case(
            testDescription: "PNG, interlaced",
            make: { try Self.png(8, 2, isInterlaced: true) },
            kinds: [.image, .incremental]
        ),
        Case(
            testDescription: "PNG, gray, that says it is an animation",
            make: {
                var file = SlowFiles.flatPNG(2_000, 1_500)
                file.chunks.insert(.init(type: "acTL", body: [0, 0, 0, 2, 0, 0, 0, 0]), at: 1)
                return file.data
            },
            kinds: [.incremental]
        ),
        Case(
            testDescription: "APNG",
            make: { SlowFiles.flatAPNG(2_000, 1_500, frameCount: 3).data },
            kinds: [.image, .frame, .incremental]
        ),
        Case(
            testDescription: "APNG whose frames are taken back",
            make: { SlowFiles.flatAPNG(2_000, 1_500, frameCount: 3, disposals: [0, 2, 0], blend: 1).data },
            kinds: [.frame]
        ),
    ]

    @Test(arguments: Self.cases) func `a decode takes what the gate counts`(_ example: Case) throws {
        let data = try example.make()
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        for kind in example.kinds {
            let counted = decoder.byteCount(for: kind, options: example.options)
            let (_, taken) = try AllocatedMemory.peak {
                try Self.decode(decoder, data, kind, example.options)
            }
            // The allocator rounds large blocks up to pages of 2 MiB.
            let tolerance = max(taken, counted) / 10 + 2 << 20
            #expect(abs(counted - taken) <= tolerance, "\(kind): counted \(counted), took \(taken)")
        }
    }

    /// Turns and converts the image, after the coder has freed its memory.
    @Test(.enabled(if: Fixtures.corpus != nil), arguments: [1, 6])
    func `finishing an image takes what the gate counts`(orientation: Int) throws {
        let path = try #require(Fixtures.corpus).appending(path: "icc-profiles/DisplayP3-v4.icc")
        var options = EncodeOptions(quality: 60)
        options.metadata.colorProfile = try Data(contentsOf: path)
        options.metadata.exif = Data(SampleFiles.exif(orientation: orientation))
        let image = Image(pixels: try Self.flat(.rgb8, width: 3_000, height: 2_000))
        let data = try JPEGCoder().encode(image, as: .jpeg, options: options)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        // The first decode caches the colour transform, which is not part of the image's memory.
        _ = try decoder.decode()
        let counted = decoder.byteCount(options: DecodeOptions())
        let (_, taken) = try AllocatedMemory.peak { try decoder.decode() }
        #expect(abs(counted - taken) <= max(taken, counted) / 10 + 2 << 20, "counted \(counted), took \(taken)")
    }

    private static func decode(
        _ decoder: ImageDecoder,
        _ data: Data,
        _ kind: DecodeKind,
        _ options: DecodeOptions
    ) throws {
        switch kind {
        case .image: _ = try decoder.decode(options: options)
        case .frame:
            let compositor = try #require(try decoder.makeCompositor(options: options))
            for index in 0..<decoder.header.animation.frameCount { _ = try compositor.frame(at: index) }
        case .rows:
            _ = try decoder.withRows(options: options) { rows, _, _ in
                let row = UnsafeMutableRawBufferPointer.allocate(
                    byteCount: rows.layout.planes[0].bytesPerRow,
                    alignment: PixelLayout.alignment
                )
                defer { row.deallocate() }
                for _ in 0..<rows.layout.height { try rows.readRow(into: row) }
            }
        case .incremental:
            let coder = try SampleFiles.registry.coder(decoding: data)
            let format = try #require(ImageFormat(sniffing: data))
            let incremental = try #require(try coder.makeIncrementalDecoder(for: format, options: options))
            for start in stride(from: 0, to: data.count, by: 1 << 16) {
                try incremental.append(data.slice(start, 1 << 16))
                if let preview = try incremental.preview() { _ = try decoder.finish(preview, options: options) }
            }
            _ = try incremental.finish()
        }
    }
}

extension Data {
    fileprivate func slice(_ start: Int, _ count: Int) -> Data { self.dropFirst(start).prefix(count) }
}
