// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Rows, sizes, damage and hostile files when JPEGs are decoded.
@Suite(.computing, .enabled(if: Corpus.isRead), .timeLimit(.minutes(5))) struct JPEGDecodingTests {
    private let coder = JPEGCoder()

    private func data(_ path: String) throws -> Data {
        try #require(Corpus.images.first { $0.path == path }).data
    }

    private func decode(_ data: Data, _ options: DecodeOptions = DecodeOptions()) throws -> DecodedImage {
        try self.coder.open(data).decode(options: options)
    }

    @Test(arguments: ["photos/TestJFIF.jpg", "jpeg-progressive/cat.jpg", "jpeg-cmyk/cmyk-icc.jpg"], [1, 4])
    func `rows are those of the image`(path: String, divisor: Int) throws {
        let data = try self.data(path)
        let encoded = try self.coder.open(data)
        let size = PixelSize(width: encoded.header.pixelWidth / divisor, height: encoded.header.pixelHeight / divisor)
        let options = DecodeOptions(sufficientSize: size)
        let whole = try self.decode(data, options).image.pixels
        let rows = try encoded.withRows(options: options) { rows, width, height in
            #expect(rows.layout == whole.layout)
            #expect(width == Double(encoded.header.pixelWidth) / Double(divisor))
            #expect(height == Double(encoded.header.pixelHeight) / Double(divisor))
            return try PixelBuffer(
                rows.layout,
                fillingUnsafely: { bytes in
                    for row in 0..<rows.layout.height {
                        let start = row * rows.layout.planes[0].bytesPerRow
                        let end = start + rows.layout.planes[0].usedBytesPerRow
                        try rows.readRow(into: UnsafeMutableRawBufferPointer(rebasing: bytes[start..<end]))
                    }
                }
            )
        }
        #expect(PixelMeasure.digest(try #require(rows)) == PixelMeasure.digest(whole))
    }

    #if LittleCMS
    @Test(arguments: CMYKReference.all) func `inks are converted by their profile`(_ reference: CMYKReference) throws {
        let means = PixelMeasure.means(try self.decode(try self.data(reference.path)).image.pixels)
        let mean = zip(means.whole, reference.mean).map { abs($0 - $1) }.max() ?? 255
        #expect(mean <= 2)
    }
    #endif

    /// A profile for RGB or gray does not apply to CMYK, nor to the RGB that CMYK is converted to.
    @Test(arguments: [false, true]) func `inks leave a profile of other colours alone`(isGray: Bool) throws {
        let plain = SlowFiles.flatJPEG(40, 30, componentCount: 4)
        let segment = SlowFiles.profileSegment(ICCSample.profile(isGray: isGray))
        let tagged = SlowFiles.flatJPEG(40, 30, componentCount: 4, after: segment)
        for color in [ColorHandling.convert(.relativeColorimetric), .keep, .ignore] {
            let options = DecodeOptions(color: color)
            let image = try ImageDecoder(tagged, registry: SampleFiles.registry).decode(options: options)
            let expected = try ImageDecoder(plain, registry: SampleFiles.registry).decode(options: options)
            #expect(image.pixels.samples == expected.pixels.samples)
            #expect(image.colorProfile == nil)
        }
    }

    /// Pillow and libvips treat CMYK samples as amounts of light, with or without an Adobe marker.
    @Test(arguments: ["jpg-cmyk-1.jpg", "jpg-cmyk-2.jpg", "cmyk_t0.jpg", "cmyk-icc.jpg"])
    func `inks need no adobe marker`(name: String) throws {
        let data = try self.data("jpeg-cmyk/\(name)")
        var plain = data
        for range in data.segments(marker: 0xEE).reversed() { plain.removeSubrange(range) }
        for color in [ColorHandling.convert(.relativeColorimetric), .ignore] {
            let pixels = try self.decode(data, DecodeOptions(color: color)).image.pixels
            let plainPixels = try self.decode(plain, DecodeOptions(color: color)).image.pixels
            #expect(PixelMeasure.digest(plainPixels) == PixelMeasure.digest(pixels))
        }
    }

    @Test(arguments: [UInt8(0xFE), 0xE0, 0xE1, 0xE2, 0xEE], [UInt8(0), 1])
    func `a segment too short for its length is skipped`(marker: UInt8, length: UInt8) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 40, height: 30)
        let data = try self.coder.encode(Image(pixels: pixels), as: .jpeg, options: EncodeOptions())
        var odd = data
        odd.insert(contentsOf: [0xFF, marker, 0, length], at: data.startIndex + 2)
        #expect(try self.decode(odd).image.pixels.samples == (try self.decode(data).image.pixels.samples))
        let pieces = try #require(try self.coder.makeIncrementalDecoder(for: .jpeg, options: DecodeOptions()))
        for byte in odd { try pieces.append(Data([byte])) }
        #expect(try pieces.finish().image.pixels.samples == (try self.decode(data).image.pixels.samples))
    }

    @Test(arguments: [UInt8(0xDB), 0xC4, 0xC0, 0xDA], [UInt8(0), 1])
    func `a table too short for its length is refused`(marker: UInt8, length: UInt8) throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 40, height: 30)
        var data = try self.coder.encode(Image(pixels: pixels), as: .jpeg, options: EncodeOptions())
        data.insert(contentsOf: [0xFF, marker, 0, length], at: data.startIndex + 2)
        let error = #expect(throws: CodingError.self) { try self.decode(data) }
        #expect(error?.code == .corrupt)
    }

    @Test func `lying markers are refused`() throws {
        for path in ["jpeg-exotic/testorig12.jpg", "jpeg-exotic/jpeg_lossless_sel1.jpg", "jpeg-exotic/testimgl.jpg"] {
            let data = try self.data(path)
            let error = #expect(throws: CodingError.self) { try self.coder.open(data) }
            #expect(error?.code == .unsupportedFeature, "\(path)")
        }
    }

    @Test(arguments: ["photos/TestJFIF.jpg", "jpeg-progressive/3.jpg", "jpeg-exotic/testimgari.jpg"])
    func `a missing end is an error unless allowed`(path: String) throws {
        let data = try self.data(path)
        let start = try #require(data.firstRange(of: Data([0xFF, 0xDA]))).upperBound
        for share in stride(from: 0.05, to: 0.99, by: 0.23) {
            let part = data.prefix(start + Int(Double(data.count - start) * share))
            let error = #expect(throws: CodingError.self) { try self.decode(part) }
            #expect(error?.code == .truncated, "\(share)")
            let image = try self.decode(part, DecodeOptions(allowsTruncated: true)).image
            #expect(image.width > 0)
        }
    }

    /// The time of a scan depends on the image's size and not on the scan's bytes.
    @Test func `endless scans are refused`() throws {
        let data = try self.data("jpeg-progressive/3.jpg")
        let scan = try #require(data.range(ofScan: 1))
        let end = try #require(data.range(ofScan: 2)).lowerBound
        var bomb = data.prefix(end)
        for _ in 0..<600 { bomb += data[scan.lowerBound..<end] }
        bomb += Data([0xFF, 0xD9])
        let error = #expect(throws: CodingError.self) { try self.decode(bomb) }
        #expect(error?.code == .corrupt)
        #expect(error?.message.contains("500 scans") == true)
        let decoder = try #require(try self.coder.makeIncrementalDecoder(for: .jpeg, options: DecodeOptions()))
        #expect(throws: CodingError.self) { try decoder.append(bomb) }
    }

    @Test func `damage behind a scan keeps the scan`() throws {
        let data = try self.data("jpeg-progressive/3.jpg")
        let second = try #require(data.range(ofScan: 1)).lowerBound
        // A Huffman table without a valid code.
        let damaged = data.prefix(second) + Data([0xFF, 0xC4, 0, 19, 0] + [UInt8](repeating: 255, count: 16))
        #expect(throws: CodingError.self) { try self.decode(damaged) }
        let image = try self.decode(damaged, DecodeOptions(allowsTruncated: true)).image
        #expect((PixelMeasure.means(image.pixels).cells.max() ?? 0) > 100)
    }

    @Test func `profile parts may come in any order`() throws {
        let data = try self.data("icc/icc_profile_big.jpg")
        let profile = try #require(try self.coder.open(data).header.colorProfile)
        let segments = data.segments(marker: 0xE2)
        try #require(segments.count > 1)
        let rest = Data(data.prefix(2)) + data[(try #require(segments.last)).upperBound...]
        func shuffled(_ ranges: [Range<Int>]) -> Data {
            rest.prefix(2) + ranges.reduce(Data()) { $0 + data[$1] } + rest.dropFirst(2)
        }
        #expect(try self.coder.open(shuffled(segments.reversed())).header.colorProfile == profile)
        #expect(try self.coder.open(shuffled(segments + segments)).header.colorProfile == profile)
        #expect(try self.coder.open(shuffled(Array(segments.dropFirst()))).header.colorProfile == nil)
    }

    @Test func `a cancelled task stops reading`() async throws {
        let data = try self.data("photos/TestJFIF.jpg")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try self.decode(data).image.width
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a bomb is refused from its header`() throws {
        let data = try self.data("bombs/max_size.jpg")
        let (error, peak) = AllocatedMemory.peak {
            #expect(throws: CodingError.self) { try ImageDecoder(data, registry: CoderRegistry()) }
        }
        #expect(error?.code == .sideTooLong)
        #expect(peak < 1 << 20)
    }

    @Test func `coefficients are counted`() throws {
        let progressive = try self.coder.open(try self.data("photos/TestImageLarge.jpg"))
        let pixels = progressive.header.pixelWidth * progressive.header.pixelHeight
        #expect(progressive.byteCount(for: .rows, options: DecodeOptions()) > pixels * 2)
        let baseline = try self.coder.open(try self.data("photos/TestJFIF.jpg"))
        #expect(baseline.byteCount(for: .rows, options: DecodeOptions()) < 1 << 20)
    }
}

/// A CMYK line of the corpus' icc.tsv.
struct CMYKReference: Sendable, CustomTestStringConvertible {
    let path: String
    let mean: [Double]

    var testDescription: String { self.path }

    static let all: [CMYKReference] = {
        guard let folder = Fixtures.corpus, let table = try? Data(contentsOf: folder.appending(path: "icc.tsv")) else {
            return []
        }
        return table.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let columns = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
                .map { String(decoding: $0, as: UTF8.self) }
            guard columns.count > 3, columns[2] == "CMYK", columns[0].hasSuffix(".jpg") else { return nil }
            return CMYKReference(path: columns[0], mean: columns[3].split(separator: ",").compactMap { Double($0) })
        }
    }()
}

extension Data {
    /// Returns the segments with a marker, in file order.
    fileprivate func segments(marker: UInt8) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var offset = self.startIndex + 2
        while offset + 4 <= self.endIndex, self[offset] == 0xFF, self[offset + 1] != 0xDA {
            let end = offset + 2 + Int(self[offset + 2]) << 8 + Int(self[offset + 3])
            if self[offset + 1] == marker { ranges.append(offset..<end) }
            offset = end
        }
        return ranges
    }

    /// Returns the range of the tables and the header of a scan, counting scans from 0.
    fileprivate func range(ofScan index: Int) -> Range<Int>? {
        var start = self.startIndex
        for number in 0... {
            guard let scan = self[start...].firstRange(of: Data([0xFF, 0xDA])) else { return nil }
            if number == index {
                let tables = self[start..<scan.lowerBound].firstRange(of: Data([0xFF, 0xC4]))
                return (tables?.lowerBound ?? scan.lowerBound)..<scan.upperBound
            }
            start = scan.upperBound
        }
        return nil
    }
}
