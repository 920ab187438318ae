// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The layout of a PNG's samples in its scanlines, from its `IHDR` chunk.
///
/// Source: W3C PNG, third edition, section 11.2.1.
struct PNGLayout: Equatable {
    /// The colour types of an `IHDR` chunk.
    enum ColorType: UInt8 {
        case gray = 0
        case rgb = 2
        case palette = 3
        case grayAlpha = 4
        case rgba = 6

        var channelCount: Int {
            switch self {
            case .gray, .palette: 1
            case .grayAlpha: 2
            case .rgb: 3
            case .rgba: 4
            }
        }

        fileprivate func allows(depth: UInt8) -> Bool {
            switch self {
            case .gray: [1, 2, 4, 8, 16].contains(depth)
            case .palette: [1, 2, 4, 8].contains(depth)
            case .grayAlpha, .rgb, .rgba: depth == 8 || depth == 16
            }
        }
    }

    static let headerLength = 13

    /// The width of the image or of one frame in pixels.
    var width: Int
    /// The height of the image or of one frame in pixels.
    var height: Int
    let bitDepth: Int
    let colorType: ColorType
    let isInterlaced: Bool

    /// Reads the content of an `IHDR` chunk, which must have 13 bytes.
    init(_ content: UnsafeRawBufferPointer) throws(CodingError) {
        let width = Int(content.bigEndian(at: 0) as UInt32)
        let height = Int(content.bigEndian(at: 4) as UInt32)
        guard width > 0, height > 0, width <= Int(Int32.max), height <= Int(Int32.max) else {
            throw .corrupt(.png, "it declares an impossible size")
        }
        guard let colorType = ColorType(rawValue: content[9]) else {
            throw .corrupt(.png, "its colour type is unknown")
        }
        guard colorType.allows(depth: content[8]) else {
            throw .corrupt(.png, "its colour type does not go with its bit depth")
        }
        guard content[10] == 0, content[11] == 0, content[12] < 2 else {
            throw .corrupt(.png, "its compression, filter or interlace method is unknown")
        }
        self.width = width
        self.height = height
        self.bitDepth = Int(content[8])
        self.colorType = colorType
        self.isInterlaced = content[12] == 1
    }

    var bitsPerPixel: Int { self.bitDepth * self.colorType.channelCount }

    /// The distance in bytes to the left neighbour that filters use.
    var bytesPerPixel: Int { max(1, self.bitsPerPixel / 8) }

    /// Returns the bytes of a scanline of `width` pixels, without its filter byte.
    func byteCount(ofLine width: Int) -> Int {
        (width * self.bitsPerPixel + 7) / 8
    }

    /// The passes in which the scanlines are stored, without empty ones.
    var passes: [PNGPass] {
        guard self.isInterlaced else { return [PNGPass(width: self.width, height: self.height)] }
        return PNGPass.adam7(width: self.width, height: self.height)
    }

    /// The bytes of all scanlines with their filter bytes, which is the size of the inflated data.
    ///
    /// `Int.max` if the number overflows.
    var filteredByteCount: Int {
        var sum = 0
        for pass in self.passes {
            let (bytes, overflows) = (self.byteCount(ofLine: pass.width) + 1).multipliedReportingOverflow(
                by: pass.height
            )
            let (next, overflowsInAll) = sum.addingReportingOverflow(bytes)
            guard !overflows, !overflowsInAll else { return .max }
            sum = next
        }
        return sum
    }
}

/// The pixels of an image in one pass of the Adam7 interlace.
///
/// Source: W3C PNG, third edition, section 8.1.
struct PNGPass: Equatable {
    /// The number of pixels in each of its scanlines.
    let width: Int
    /// The number of its scanlines.
    let height: Int
    /// The column of its first pixel.
    var left = 0
    /// The row of its first scanline.
    var top = 0
    /// The distance between two of its columns.
    var columnStep = 1
    /// The distance between two of its rows.
    var rowStep = 1
    /// The number of columns that a pixel fills until later passes arrive.
    var blockWidth = 1
    /// The number of rows that a pixel fills until later passes arrive.
    var blockHeight = 1

    /// Returns the passes of an interlaced image, without empty ones.
    static func adam7(width: Int, height: Int) -> [PNGPass] {
        let grid = [
            (0, 0, 8, 8, 8, 8), (4, 0, 8, 8, 4, 8), (0, 4, 4, 8, 4, 4), (2, 0, 4, 4, 2, 4), (0, 2, 2, 4, 2, 2),
            (1, 0, 2, 2, 1, 2), (0, 1, 1, 2, 1, 1),
        ]
        return grid.compactMap { left, top, columnStep, rowStep, blockWidth, blockHeight in
            guard width > left, height > top else { return nil }
            return PNGPass(
                width: (width - left + columnStep - 1) / columnStep,
                height: (height - top + rowStep - 1) / rowStep,
                left: left,
                top: top,
                columnStep: columnStep,
                rowStep: rowStep,
                blockWidth: blockWidth,
                blockHeight: blockHeight
            )
        }
    }
}
