// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeConformanceSupport
import TintypeImage
import TintypeTestTraits

/// Encodes JPEGs and decodes them again.
@Suite(.computing) struct JPEGEncodingTests {
    private let coder = JPEGCoder()

    /// Returns an image with gradients and edges in all channels.
    private func image(_ format: PixelFormat = .rgb8, width: Int = 203, height: Int = 117) throws -> Image {
        let layout = try PixelLayout(format: format, width: width, height: height)
        let plane = layout.planes[0]
        let pixels = try PixelBuffer(
            layout,
            filling: { span in
                for row in 0..<height {
                    for column in 0..<width {
                        for channel in 0..<format.channelCount {
                            let slope = UInt8((row * (channel + 1) + column * 2) & 0xFF)
                            let isChecked = (row / 16 + column / 16) % 2 == 0
                            let value = channel == 3 ? UInt8(column & 0xFF) : isChecked ? slope : 200
                            let offset = row * plane.bytesPerRow + column * format.channelCount + channel
                            span.storeBytes(of: value, toByteOffset: offset, as: UInt8.self)
                        }
                    }
                }
            }
        )
        return Image(pixels: pixels)
    }

    private func encode(_ image: Image, _ options: EncodeOptions) throws -> Data {
        try self.coder.encode(image, as: .jpeg, options: options)
    }

    private func decode(_ data: Data) throws -> Image {
        try self.coder.open(data).decode(options: DecodeOptions()).image
    }

    /// Returns the largest difference between the mean values of corresponding cells.
    private func difference(_ first: Image, _ second: Image) -> Double {
        let left = PixelMeasure.means(first.pixels).cells
        let right = PixelMeasure.means(second.pixels).cells
        return zip(left, right).map { abs($0 - $1) }.max() ?? 0
    }

    @Test(arguments: [EncodeOptions.ChromaSubsampling.automatic, .none, .half, .quarter], [false, true])
    func `what is written can be read`(_ subsampling: EncodeOptions.ChromaSubsampling, isProgressive: Bool) throws {
        let image = try self.image()
        let options = EncodeOptions(quality: 92, isProgressive: isProgressive, chromaSubsampling: subsampling)
        let data = try self.encode(image, options)
        #expect(self.difference(image, try self.decode(data)) < 8)
        #expect(data.contains(marker: isProgressive ? 0xC2 : 0xC0))
        let factors: UInt8 = subsampling == .half ? 0x21 : subsampling == .quarter ? 0x22 : 0x11
        #expect(data.frameHeader(marker: isProgressive ? 0xC2 : 0xC0)?[7] == factors)
    }

    @Test(arguments: [(89, UInt8(0x22)), (90, 0x11)]) func `colour is stored by quality`(
        quality: Int,
        factors: UInt8
    ) throws {
        let data = try self.encode(try self.image(), EncodeOptions(quality: quality))
        #expect(data.frameHeader(marker: 0xC0)?[7] == factors)
    }

    @Test func `gray stays gray`() throws {
        let image = try self.image(.gray8)
        let decoded = try self.decode(try self.encode(image, EncodeOptions(quality: 95)))
        #expect(decoded.pixels.format == .gray8)
        #expect(self.difference(image, decoded) < 3)
    }

    @Test func `alpha is laid over the background`() throws {
        let background = Color(red: 10, green: 120, blue: 250)
        let data = try self.encode(try self.image(.rgba8), EncodeOptions(quality: 100, background: background))
        // The pixels of the first column are transparent.
        let decoded = try self.decode(data)
        let first = decoded.pixels.withUnsafeBytes { Array($0.prefix(3)) }
        for (sample, wanted) in zip(first, [10, 120, 250]) { #expect(abs(Int(sample) - wanted) < 12) }
    }

    @Test(arguments: [1_500, 3_000, 6_000], [false, true]) func `a limit of bytes is kept`(
        limit: Int,
        isProgressive: Bool
    ) throws {
        let options = EncodeOptions(quality: 95, isProgressive: isProgressive, maximumByteCount: limit)
        let data = try self.encode(try self.image(), options)
        #expect(data.count <= limit)
        #expect(data.count > limit / 2)
        _ = try self.decode(data)
    }

    @Test func `a limit that cannot be kept is an error`() throws {
        let image = try self.image()
        let error = #expect(throws: CodingError.self) {
            try self.encode(image, EncodeOptions(maximumByteCount: 200))
        }
        #expect(error?.code == .encodingFailed)
    }

    @Test func `a limit that is not needed changes no quality`() throws {
        let image = try self.image()
        let free = try self.encode(image, EncodeOptions(quality: 70))
        let limited = try self.encode(image, EncodeOptions(quality: 70, maximumByteCount: free.count))
        let digests = try [free, limited].map { PixelMeasure.digest(try self.decode($0).pixels) }
        #expect(digests[0] == digests[1])
    }

    @Test func `metadata is written and read back`() throws {
        let profile = Data((0..<150_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        // A TIFF structure with the orientation 6.
        let exif = Data([0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0])
        let metadata = EncodeOptions.Metadata(exif: exif, xmp: Data("<x/>".utf8), colorProfile: profile)
        let data = try self.encode(try self.image(), EncodeOptions(metadata: metadata))
        let header = try self.coder.open(data).header
        #expect(header.colorProfile == profile)
        #expect(header.orientation.rawValue == 6)
        #expect(data.firstRange(of: Data("http://ns.adobe.com/xap/1.0/\0<x/>".utf8)) != nil)
    }

    @Test func `metadata that does not fit is an error`() throws {
        let image = try self.image()
        for metadata in [
            EncodeOptions.Metadata(exif: Data(count: 65_528)), EncodeOptions.Metadata(xmp: Data(count: 65_510)),
            EncodeOptions.Metadata(colorProfile: Data(count: 255 * 65_519 + 1)),
        ] {
            let error = #expect(throws: CodingError.self) { try self.encode(image, EncodeOptions(metadata: metadata)) }
            #expect(error?.code == .encodingFailed)
        }
    }

    @Test func `too long a side is an error`() throws {
        let image = try self.image(.gray8, width: 65_501, height: 1)
        let error = #expect(throws: CodingError.self) { try self.encode(image, EncodeOptions()) }
        #expect(error?.code == .encodingFailed)
    }

    @Test(arguments: [false, true]) func `a cancelled task stops writing`(isProgressive: Bool) async throws {
        let image = try self.image(width: 2_000, height: 2_000)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try self.encode(image, EncodeOptions(isProgressive: isProgressive))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}

extension Data {
    fileprivate func contains(marker: UInt8) -> Bool { self.firstRange(of: Data([0xFF, marker])) != nil }

    /// Returns the content of the frame header.
    fileprivate func frameHeader(marker: UInt8) -> [UInt8]? {
        self.firstRange(of: Data([0xFF, marker, 0, 17])).map { Array(self[$0.upperBound...].prefix(15)) }
    }
}
