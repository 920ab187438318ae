// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import Glibc
package import TintypeCoding
package import TintypeImage
import TintypeTestSupport

/// Encoded images for tests.
package enum SampleFiles {
    package static let registry = CoderRegistry()

    /// Returns a smooth image in the given format.
    package static func smooth(
        _ format: ImageFormat,
        _ pixelFormat: PixelFormat = .rgb8,
        width: Int = 64,
        height: Int = 48
    ) throws -> Data {
        try self.encode(try .smooth(pixelFormat, width: width, height: height), as: format)
    }

    package static func encode(_ pixels: PixelBuffer, as format: ImageFormat, quality: Int = 80) throws -> Data {
        try self.registry.coder(encoding: format)
            .encode(Image(pixels: pixels), as: format, options: EncodeOptions(quality: quality))
    }

    package static func decode(_ data: Data, _ options: DecodeOptions = DecodeOptions()) throws -> Image {
        try ImageDecoder(data, registry: self.registry, limits: options.limits).decode(options: options)
    }

    /// Returns a JPEG whose frame header declares a wrong size.
    package static func jpeg(declaring width: Int, _ height: Int) throws -> Data {
        var data = try self.smooth(.jpeg, width: 16, height: 16)
        guard let marker = data.firstRange(of: Data([0xFF, 0xC0])) else { return data }
        data.replace(at: marker.lowerBound + 5, with: UInt16(height).bigEndianBytes + UInt16(width).bigEndianBytes)
        return data
    }

    /// Returns a JPEG with an EXIF block that has an orientation.
    package static func jpeg(_ pixels: PixelBuffer, orientation: Int, isLittleEndian: Bool = false) throws -> Data {
        let block = Array("Exif\0\0".utf8) + self.exif(orientation: orientation, isLittleEndian: isLittleEndian)
        let segment = [0xFF, 0xE1] + UInt16(block.count + 2).bigEndianBytes + block
        var data = try self.encode(pixels, as: .jpeg, quality: 95)
        data.insert(contentsOf: segment, at: 2)
        return data
    }

    /// Returns a TIFF block with only the orientation tag.
    package static func exif(orientation: Int, isLittleEndian: Bool = false) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
            return isLittleEndian ? bytes : bytes.reversed()
        }
        return Array((isLittleEndian ? "II" : "MM").utf8) + number(42, 2) + number(8, 4)
            + number(1, 2) + number(0x0112, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + [0, 0]
            + number(0, 4)
    }
}

extension Data {
    /// Overwrites the bytes from `offset` on.
    package mutating func replace(at offset: Int, with bytes: [UInt8]) {
        self.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }
}

extension FixedWidthInteger {
    /// The bytes in big-endian order.
    package var bigEndianBytes: [UInt8] {
        Swift.withUnsafeBytes(of: self.bigEndian) { Array($0) }
    }
}

/// Yields to another thread, for code that may wait for a test on its own thread.
package func yieldThread() {
    sched_yield()
}
