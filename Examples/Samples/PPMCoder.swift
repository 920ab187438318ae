// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import Tintype

extension ImageFormat {
    /// The portable pixmap of Netpbm, with three bytes a pixel (https://netpbm.sourceforge.net/doc/ppm.html).
    public static let ppm = ImageFormat(name: "ppm", mediaType: "image/x-portable-pixmap", fileExtensions: ["ppm"]) {
        $0.starts(with: Array("P6".utf8))
    }
}

/// A coder for a format that Tintype does not know: binary PPM.
public struct PPMCoder: ImageCoder {
    public let decodableFormats: Set<ImageFormat> = [.ppm]
    public let encodableFormats: Set<ImageFormat> = [.ppm]

    public init() {}

    public func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try EncodedPPM(data)
    }

    public func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        guard image.pixels.format == .rgb8 else {
            throw CodingError(
                code: .unsupportedFeature,
                message: "PPM has no alpha; flatten the image.",
                format: format
            )
        }
        let layout = image.pixels.layout
        var data = Data("P6\n\(layout.width) \(layout.height)\n255\n".utf8)
        image.pixels.withBytes { bytes in
            for row in 0..<layout.height {
                let start = row * layout.planes[0].bytesPerRow
                for offset in start..<start + layout.width * 3 {
                    data.append(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                }
            }
        }
        return data
    }
}

private struct EncodedPPM: EncodedImage {
    let header: ImageHeader
    private let samples: Data

    init(_ data: Data) throws {
        // Magic, width, height, largest value; one white space before the samples.
        let fields = data.prefix(64).split(maxSplits: 4, omittingEmptySubsequences: false) {
            [9, 10, 13, 32].contains($0)
        }
        let numbers = fields.dropFirst().prefix(3).compactMap { Int(String(decoding: $0, as: UTF8.self)) }
        guard fields.count == 5, fields[0].elementsEqual("P6".utf8), numbers.count == 3, numbers[2] == 255,
            numbers[0] > 0, numbers[1] > 0, let size = numbers[0].product(numbers[1], 3),
            data.endIndex - fields[4].startIndex >= size
        else {
            throw CodingError(
                code: .corrupt,
                message: "This is not a whole PPM of 8 bits; write it again.",
                format: .ppm
            )
        }
        self.header = ImageHeader(format: .ppm, pixelWidth: numbers[0], pixelHeight: numbers[1])
        self.samples = data[fields[4].startIndex...].prefix(size)
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        let layout = try PixelLayout(format: .rgb8, width: self.header.pixelWidth, height: self.header.pixelHeight)
        let pixels = try PixelBuffer(layout) { bytes in
            var samples = self.samples.makeIterator()
            for row in 0..<layout.height {
                for column in 0..<layout.width * 3 {
                    let offset = row * layout.planes[0].bytesPerRow + column
                    bytes.storeBytes(of: samples.next() ?? 0, toByteOffset: offset, as: UInt8.self)
                }
            }
        }
        return DecodedImage(Image(pixels: pixels, sourceFormat: .ppm))
    }
}

extension Int {
    /// Returns the product of three numbers, or `nil` if it overflows: a file may name any size.
    fileprivate func product(_ second: Int, _ third: Int) -> Int? {
        let (first, isOver) = self.multipliedReportingOverflow(by: second)
        let (result, isOverAgain) = first.multipliedReportingOverflow(by: third)
        return isOver || isOverAgain ? nil : result
    }
}
