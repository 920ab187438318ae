// SPDX-License-Identifier: Apache-2.0

import CTintypeZlib
import FoundationEssentials
import Testing

@testable import TintypeCommand

/// The pixels that a terminal shows for an escape code, with red in the lowest byte and zero for undrawn pixels.
struct DrawnImage: Equatable {
    let width: Int
    let height: Int
    var pixels: [UInt32]

    init(width: Int, height: Int, pixels: [UInt32]) {
        self.width = width
        self.height = height
        self.pixels = pixels
    }

    /// Creates the image that a terminal with alpha shows.
    init(_ pixels: TerminalPixels) {
        self.init(width: pixels.width, height: pixels.height, pixels: pixels.pixels)
    }

    /// Draws the body of a Sixel code, without `ESC P` and `ESC \`.
    ///
    /// Source: "VT330/VT340 Programmer Reference Manual", volume 2, chapter 14.
    init(sixel body: ArraySlice<UInt8>) throws {
        var reader = ByteReader(body)
        // P2 is 1, which keeps the pixels that are not drawn.
        try #require(reader.numbers() == [0, 1, 0])
        try #require(reader.take() == UInt8(ascii: "q") && reader.take() == UInt8(ascii: "\""))
        let raster = reader.numbers()
        try #require(raster.count == 4 && raster[0] == 1 && raster[1] == 1)
        self.init(width: raster[2], height: raster[3], pixels: Array(repeating: 0, count: raster[2] * raster[3]))
        var palette: [Int: UInt32] = [:]
        var (color, column, top) = (0, 0, 0)
        while let byte = reader.take() {
            switch byte {
            case UInt8(ascii: "#"):
                let numbers = reader.numbers()
                color = numbers[0]
                guard numbers.count > 1 else { break }
                try #require(numbers.count == 5 && numbers[1] == 2 && numbers[2...].allSatisfy { $0 <= 100 })
                let levels = numbers[2...].map { UInt32(($0 * 255 + 50) / 100) }
                palette[color] = 0xFF00_0000 | levels[2] << 16 | levels[1] << 8 | levels[0]
            case UInt8(ascii: "$"): column = 0
            case UInt8(ascii: "-"): (column, top) = (0, top + 6)
            default:
                var count = 1
                var sixel = byte
                if byte == UInt8(ascii: "!") {
                    count = try #require(reader.numbers().first)
                    sixel = reader.take() ?? 0
                }
                try #require((UInt8(ascii: "?")...UInt8(ascii: "~")).contains(sixel))
                guard let pixel = palette[color] else {
                    throw TerminalModelError(description: "colour \(color) has not been set")
                }
                for _ in 0..<count {
                    try self.draw(sixel - UInt8(ascii: "?"), at: column, top, pixel)
                    column += 1
                }
            }
        }
    }

    private mutating func draw(_ mask: UInt8, at column: Int, _ top: Int, _ pixel: UInt32) throws {
        for bit in 0..<6 where mask >> bit & 1 == 1 {
            try #require(column < self.width && top + bit < self.height, "a pixel outside of the image")
            let place = (top + bit) * self.width + column
            try #require(self.pixels[place] == 0, "a pixel is drawn twice")
            self.pixels[place] = pixel
        }
    }

    /// Creates the pixels of a complete image in Kitty's protocol.
    init(kitty keys: [String: String], payload: [UInt8]) throws {
        let width = try #require(keys["s"].flatMap { Int($0) })
        let height = try #require(keys["v"].flatMap { Int($0) })
        let channels = keys["f"] == "32" ? 4 : 3
        try #require(channels == 4 || keys["f"] == "24")
        var samples = try #require(Data(base64Encoded: Data(payload)).map { Array($0) })
        if keys["o"] == "z" {
            var count = uLongf(width * height * 4 + 1)
            var inflated = [UInt8](repeating: 0, count: Int(count))
            try #require(uncompress(&inflated, &count, samples, uLong(samples.count)) == Z_OK)
            samples = Array(inflated[..<Int(count)])
        }
        try #require(samples.count == width * height * channels)
        self.init(
            width: width,
            height: height,
            pixels: (0..<width * height).map { place in
                (0..<4).reduce(UInt32(0)) { pixel, channel in
                    pixel | UInt32(channel < channels ? samples[place * channels + channel] : 255) << (channel * 8)
                }
            }
        )
    }
}

/// A reader of one byte after the other.
struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        self.rest = bytes
    }

    var next: UInt8? { self.rest.first }

    mutating func take() -> UInt8? { self.rest.popFirst() }

    /// Takes bytes as long as they meet the condition.
    mutating func take(while condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let taken = self.rest.prefix(while: condition)
        self.rest = self.rest.dropFirst(taken.count)
        return taken
    }

    /// Takes all bytes before `end`, and `end` itself.
    mutating func take(through end: [UInt8]) throws -> ArraySlice<UInt8> {
        let start = self.rest
        while !self.rest.starts(with: end) { try #require(self.rest.popFirst() != nil, "an escape code has no end") }
        let taken = start[start.startIndex..<self.rest.startIndex]
        self.rest = self.rest.dropFirst(end.count)
        return taken
    }

    /// Takes numbers separated by semicolons, with 0 for an empty number.
    mutating func numbers() -> [Int] {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let text = self.take { digits.contains($0) || $0 == UInt8(ascii: ";") }
        return String(decoding: text, as: UTF8.self)
            .split(separator: ";", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
    }
}
