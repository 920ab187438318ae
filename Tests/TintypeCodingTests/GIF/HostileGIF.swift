// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// GIFs whose few bytes take much memory or time.
enum HostileGIF {
    /// One image of a file.
    struct Frame {
        var left = 0
        var top = 0
        var width: Int
        var height: Int
        /// The disposal: 1 keeps the frame, 2 clears it, 3 restores the previous canvas.
        var disposal: UInt8 = 1
        var transparentIndex: UInt8?
        /// The code size and the blocks of codes, or `nil` to generate pixels of one colour.
        var codes: [UInt8]?
    }

    /// Returns a file with a screen of the given size, four colours and the given images.
    static func file(width: Int, height: Int, frames: [Frame]) -> Data {
        var bytes = self.start(width: width, height: height)
        for frame in frames { self.append(frame, to: &bytes) }
        return Data(bytes + [0x3B])
    }

    /// Returns the bytes before the first image.
    static func start(width: Int, height: Int) -> [UInt8] {
        Array("GIF89a".utf8) + self.number(width) + self.number(height) + [0x81, 0, 0]
            + [255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9]
    }

    static func append(_ frame: Frame, to bytes: inout [UInt8]) {
        let flags = frame.disposal << 2 | (frame.transparentIndex == nil ? 0 : 1)
        bytes += [0x21, 0xF9, 4, flags, 5, 0, frame.transparentIndex ?? 0, 0, 0x2C]
        bytes += self.number(frame.left) + self.number(frame.top)
        bytes += self.number(frame.width) + self.number(frame.height) + [0]
        bytes += frame.codes ?? self.flat(pixelCount: frame.width * frame.height)
    }

    /// Returns image data for pixels of one colour, in which each code stands for the longest string so far.
    static func flat(pixelCount: Int) -> [UInt8] {
        var writer = BitWriter()
        writer.append(4, 3)
        writer.append(0, 3)
        var missing = pixelCount - 1
        var next = 6
        while missing > 0 {
            // This code stands for the previous string and one more pixel, until the table is full.
            let code = min(next, 4_095)
            writer.append(code, max(3, Int.bitWidth - code.leadingZeroBitCount))
            missing -= code - 4
            next += 1
        }
        writer.append(5, 12)
        return [2] + self.blocks(writer.bytes)
    }

    /// Splits bytes into blocks of 255 and appends the empty block that ends them.
    static func blocks(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + bytes.count / 255 + 2)
        for start in stride(from: 0, to: bytes.count, by: 255) {
            let block = bytes[start..<min(start + 255, bytes.count)]
            result.append(UInt8(block.count))
            result += block
        }
        return result + [0]
    }

    private static func number(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8 & 255)] }
}
