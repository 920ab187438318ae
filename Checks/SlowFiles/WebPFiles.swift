// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeImage
import TintypeTestSupport

/// WebPs (RFC 9649, RFC 6386) of flat macroblocks, of one-symbol codes, and of many chunks.
enum WebPFiles: FileGenerator {
    static let coder = "webp"

    static let genes: [Gene] =
        [
            .logarithmic("pixels", 1...120_000_000), .linear("aspect", -12...12), .linear("image", 0...3),
            // Lossy.
            .linear("filterLevel", 0...63), .linear("sharpness", 0...7), .linear("simpleFilter", 0...1),
            .linear("partitions", 0...3), .linear("quantizer", 0...127), .linear("fill", 0...110),
            .linear("noise", 0...2), .logarithmic("noiseBytes", 0...1_000_000),
            // Lossless.
            .linear("predictor", 0...15), .linear("colorTransform", 0...1), .linear("subtractGreen", 0...1),
            .linear("colorIndexing", 0...5), .linear("tileBits", 2...9), .linear("cacheBits", 0...11),
            .logarithmic("groups", 0...65_536), .linear("groupBits", 2...9), .linear("symbols", 0...3),
            .logarithmic("codeBytes", 0...1_000_000),
            // An encoder's.
            .linear("quality", 1...100), .linear("texture", 0...3),
            // Around them.
            .linear("alpha", 0...3), .linear("alphaFilter", 0...3), .linear("extended", 0...1),
            .logarithmic("frames", 0...60_000), .linear("frameWidth", 0...100), .linear("frameHeight", 0...100),
            .linear("disposal", 0...2), .linear("blend", 0...1),
            .logarithmic("segments", 0...80_000), .linear("segmentKind", 0...4),
            .logarithmic("segmentBytes", 0...900_000),
            .linear("segmentsBehind", 0...1),
        ] + ProfileFiles.genes

    static let seeds: [[String: Int]] = [
        ["pixels": 100_000_000, "image": 0, "filterLevel": 63, "fill": 100],
        [
            "pixels": 60_000_000, "image": 0, "filterLevel": 63, "fill": 100, "alpha": 2, "alphaFilter": 3,
            "extended": 1,
        ],
        ["pixels": 3_000_000, "image": 0, "filterLevel": 20, "noise": 1, "noiseBytes": 900_000],
        ["pixels": 100_000_000, "image": 1],
        ["pixels": 100_000_000, "image": 1, "predictor": 12, "colorTransform": 1, "subtractGreen": 1, "tileBits": 2],
        ["pixels": 100_000_000, "image": 1, "colorIndexing": 2],
        ["pixels": 100_000_000, "image": 1, "symbols": 2, "cacheBits": 11],
        ["pixels": 4_000_000, "image": 1, "symbols": 1, "codeBytes": 900_000, "predictor": 14, "tileBits": 2],
        ["pixels": 1_100_000, "image": 1, "groups": 60_000, "groupBits": 2, "cacheBits": 11],
        ["pixels": 4_000_000, "image": 2, "quality": 60, "texture": 2],
        ["pixels": 2_000_000, "image": 3, "texture": 1],
        ["pixels": 100_000_000, "image": 1, "frames": 20, "frameWidth": 100, "frameHeight": 100, "alpha": 1],
        ["pixels": 80_000_000, "image": 1, "frames": 10_000, "disposal": 1, "alpha": 1],
        [
            "pixels": 25_000_000, "image": 0, "fill": 100, "frames": 10, "frameWidth": 100, "frameHeight": 100,
            "alpha": 2, "disposal": 2,
        ],
        ["pixels": 100, "image": 1, "frames": 30_000, "alpha": 1],
        ["pixels": 10_000, "image": 1, "extended": 1, "segments": 80_000],
        ["pixels": 1_000_000, "image": 1, "extended": 1, "profileKind": 3, "profileBytes": 900_000],
        ["pixels": 1_000_000, "image": 1, "extended": 1, "profileKind": 2, "profileBytes": 900_000],
    ]

    static func file(_ recipe: Recipe) -> [UInt8] { Writer(recipe).file() }

    private final class Writer: FileWriter {
        init(_ recipe: Recipe) {
            super.init(recipe, sideLimit: 16_383)
        }

        private var isAnimated: Bool { self.recipe["frames"] > 0 }

        func file() -> [UInt8] {
            self.out.append("RIFF\0\0\0\0WEBP")
            let profile = ProfileFiles.profile(self.recipe, limit: 900_000)
            let isLossy = self.recipe["image"] == 0 || self.recipe["image"] == 2
            let alpha = self.recipe["alpha"] > 0
            let isExtended =
                self.recipe["extended"] == 1 || self.isAnimated || !profile.isEmpty || (alpha && isLossy)
            if isExtended {
                var header = ByteWriter()
                let segments = self.recipe["segments"] > 0 ? self.recipe["segmentKind"] : 0
                let flags = (self.isAnimated ? 2 : 0) | (alpha ? 16 : 0) | (profile.isEmpty ? 0 : 32)
                header.little(flags | (segments == 2 ? 8 : 0) | (segments == 3 ? 4 : 0), 4)
                header.little(self.width - 1, 3)
                header.little(self.height - 1, 3)
                self.chunk("VP8X", header.bytes)
                if !profile.isEmpty { self.chunk("ICCP", profile) }
            }
            if self.recipe["segmentsBehind"] == 0 { self.floods() }
            if self.isAnimated {
                self.chunk("ANIM", [0, 0, 0, 0, 0, 0])
                self.frames()
            } else {
                for part in self.picture(width: self.width, height: self.height) { self.chunk(part.name, part.body) }
            }
            if self.recipe["segmentsBehind"] == 1 { self.floods() }
            let size = self.out.count - 8
            for index in 0..<4 { self.out.replace(at: 4 + index, with: UInt8(size >> (8 * index) & 255)) }
            return self.out.bytes
        }

        private static func chunk(_ name: StaticString, _ body: [UInt8]) -> [UInt8] {
            var chunk = ByteWriter()
            chunk.append(name)
            chunk.little(body.count, 4)
            chunk.append(body)
            if body.count % 2 == 1 { chunk.append(0 as UInt8) }
            return chunk.bytes
        }

        private func chunk(_ name: StaticString, _ body: [UInt8]) { self.out.append(Self.chunk(name, body)) }

        private func floods() {
            let names: [StaticString] = ["zzzz", "ICCP", "EXIF", "XMP ", "ALPH"]
            let body = [UInt8](repeating: 0x41, count: self.recipe["segmentBytes"])
            for _ in 0..<self.recipe["segments"] where self.out.count < fileLimit {
                self.chunk(names[self.recipe["segmentKind"]], body)
            }
        }

        private func frames() {
            // Places of frames are even.
            let width = max(1, self.width * self.recipe["frameWidth"] / 100)
            let height = max(1, self.height * self.recipe["frameHeight"] / 100)
            let parts = self.picture(width: width, height: height).flatMap { Self.chunk($0.name, $0.body) }
            for index in 0..<self.recipe["frames"] where self.out.count < fileLimit {
                var frame = ByteWriter()
                frame.little(Int.random(in: 0...(self.width - width) / 2, using: &self.random), 3)
                frame.little(Int.random(in: 0...(self.height - height) / 2, using: &self.random), 3)
                frame.little(width - 1, 3)
                frame.little(height - 1, 3)
                frame.little(50, 3)
                let disposal = self.recipe["disposal"] == 2 ? index % 2 : self.recipe["disposal"]
                frame.append(UInt8(disposal | self.recipe["blend"] << 1))
                frame.append(parts)
                self.chunk("ANMF", frame.bytes)
            }
        }

        // MARK: Images

        private typealias Part = (name: StaticString, body: [UInt8])

        private func picture(width: Int, height: Int) -> [Part] {
            switch self.recipe["image"] {
            case 0: return self.alpha(width, height) + [("VP8 ", self.lossy(width, height))]
            case 1: return [("VP8L", self.lossless(width, height, isAlpha: false))]
            case 2: return self.alpha(width, height) + [("VP8 ", self.encoded(width, height, .lossy, "VP8 "))]
            default: return [("VP8L", self.encoded(width, height, .lossless, "VP8L"))]
            }
        }

        private func alpha(_ width: Int, _ height: Int) -> [Part] {
            let filter = UInt8(self.recipe["alphaFilter"] << 2)
            switch self.recipe["alpha"] {
            case 1: return [("ALPH", [filter] + [UInt8](repeating: 3, count: min(width * height, 500_000)))]
            case 2: return [("ALPH", [filter | 1] + self.lossless(width, height, isAlpha: true))]
            case 3: return [("ALPH", [filter | 1])]
            default: return []
            }
        }

        /// Zeros are a boolean coder's most likely case in each place: blocks that are predicted and have nothing left.
        private func lossy(_ width: Int, _ height: Int) -> [UInt8] {
            var header = BooleanWriter()
            header.write(0, 2)
            header.write(0, 1)
            header.write(self.recipe["simpleFilter"], 1)
            header.write(self.recipe["filterLevel"], 6)
            header.write(self.recipe["sharpness"], 3)
            header.write(0, 1)
            header.write(self.recipe["partitions"], 2)
            header.write(self.recipe["quantizer"], 7)
            let blocks = ((width + 15) / 16) * ((height + 15) / 16)
            // Modes take five bits of a block, what is left of it six.
            let room = max(0, fileLimit - self.out.count - 100)
            var first = header.finished()
            let modes = min(blocks * 5 / 8 / 100 * self.recipe["fill"] + 200, room / 2, 500_000)
            let rest = min(blocks * 6 / 8 / 100 * self.recipe["fill"] + 200, room / 2)
            var noise = ByteWriter()
            noise.random(min(room, self.recipe["noiseBytes"]), &self.random)
            if self.recipe["noise"] == 2 { first += noise.bytes.prefix(500_000) }
            first += [UInt8](repeating: 0, count: min(modes, 520_000 - first.count))
            let tokens = self.recipe["noise"] == 1 ? noise.bytes : [UInt8](repeating: 0, count: rest)
            var frame = ByteWriter()
            frame.little(1 << 4 | first.count << 5, 3)
            frame.append([0x9D, 0x01, 0x2A])
            frame.little(width, 2)
            frame.little(height, 2)
            frame.append(first)
            let partitions = 1 << self.recipe["partitions"]
            for _ in 1..<max(partitions, 1) where partitions > 1 { frame.little(tokens.count / partitions, 3) }
            frame.append(tokens)
            return frame.bytes
        }

        private func lossless(_ width: Int, _ height: Int, isAlpha: Bool) -> [UInt8] {
            var image = LosslessWriter(random: self.random)
            if !isAlpha { image.begin(width: width, height: height, hasAlpha: self.recipe["alpha"] > 0) }
            var columns = width
            if self.recipe["predictor"] > 0 {
                image.predictor(self.recipe["predictor"] - 1, tileBits: self.recipe["tileBits"])
            }
            if self.recipe["colorTransform"] == 1 { image.colorTransform(tileBits: self.recipe["tileBits"]) }
            if self.recipe["subtractGreen"] == 1 { image.subtractGreen() }
            if self.recipe["colorIndexing"] > 0 {
                let colors = [2, 4, 16, 17, 256][self.recipe["colorIndexing"] - 1]
                image.colorIndexing(colors)
                let packing = colors <= 2 ? 8 : colors <= 4 ? 4 : colors <= 16 ? 2 : 1
                columns = (width + packing - 1) / packing
            }
            let room = max(0, fileLimit - self.out.count - 100)
            image.picture(
                columns: columns,
                rows: height,
                cacheBits: self.recipe["cacheBits"],
                groups: self.recipe["groups"],
                groupBits: self.recipe["groupBits"],
                symbols: self.recipe["symbols"],
                byteCount: min(self.recipe["codeBytes"], room)
            )
            return image.finished()
        }

        /// A texture as the library's own encoder writes it: data as images have it.
        private func encoded(
            _ width: Int,
            _ height: Int,
            _ compression: EncodeOptions.Compression,
            _ name: String
        ) -> [UInt8] {
            // More takes longer to write than to search with.
            let (width, height) = (min(width, 2_000), min(height, 1_000))
            var options = EncodeOptions()
            options.compression = compression
            options.quality = self.recipe["quality"]
            guard
                let texture = try? Texture.image(self.recipe["texture"], width: width, height: height, self.random),
                let file = try? WebPCoder().encode(texture, as: .webp, options: options)
            else { return [] }
            let bytes = [UInt8](file)
            // A file of one chunk, or VP8X and others before it.
            var offset = 12
            while offset + 8 <= bytes.count {
                let size = (0..<4).reduce(0) { $0 | Int(bytes[offset + 4 + $1]) << (8 * $1) }
                let body = bytes[offset + 8..<min(bytes.count, offset + 8 + size)]
                if bytes[offset..<offset + 4].elementsEqual(name.utf8) { return Array(body) }
                offset += 8 + size + size % 2
            }
            return []
        }
    }
}

/// VP8's boolean coder (RFC 6386, section 7), as far as even odds and zeros go.
private struct BooleanWriter {
    private var output: [UInt8] = []
    private var range: UInt32 = 255
    private var bottom: UInt32 = 0
    private var bitCount = 24

    /// The lowest `width` bits of `value`, highest first, each at even odds.
    mutating func write(_ value: Int, _ width: Int) {
        for index in (0..<width).reversed() { self.write(value >> index & 1 == 1) }
    }

    private mutating func write(_ bit: Bool) {
        let split = 1 + (((self.range - 1) * 128) >> 8)
        if bit {
            self.bottom &+= split
            self.range -= split
        } else {
            self.range = split
        }
        while self.range < 128 {
            self.range <<= 1
            if self.bottom & (1 << 31) != 0 { self.carry() }
            self.bottom <<= 1
            self.bitCount -= 1
            if self.bitCount == 0 {
                self.output.append(UInt8(self.bottom >> 24))
                self.bottom &= (1 << 24) - 1
                self.bitCount = 8
            }
        }
    }

    private mutating func carry() {
        var index = self.output.count - 1
        while index >= 0, self.output[index] == 255 {
            self.output[index] = 0
            index -= 1
        }
        if index >= 0 { self.output[index] += 1 }
    }

    /// The bytes that hold what was written; zeros may follow.
    func finished() -> [UInt8] {
        var copy = self
        for _ in 0..<40 { copy.write(false) }
        return copy.output
    }
}

/// Lossless WebP (RFC 9649, section 3) with codes of one or two symbols.
private struct LosslessWriter {
    private var bits = BitWriter()
    private var random: SeededGenerator

    init(random: SeededGenerator) { self.random = random }

    func finished() -> [UInt8] {
        var copy = self.bits
        copy.write(0, 8)
        copy.fillByte()
        return copy.bytes
    }

    mutating func begin(width: Int, height: Int, hasAlpha: Bool) {
        self.bits.write(0x2F, 8)
        self.bits.write(width - 1, 14)
        self.bits.write(height - 1, 14)
        self.bits.write(hasAlpha ? 1 : 0, 1)
        self.bits.write(0, 3)
    }

    mutating func predictor(_ mode: Int, tileBits: Int) {
        self.bits.write(0b001, 3)
        self.bits.write(tileBits - 2, 3)
        self.flat(green: min(mode, 13))
    }

    mutating func colorTransform(tileBits: Int) {
        self.bits.write(0b011, 3)
        self.bits.write(tileBits - 2, 3)
        self.flat(green: 7)
    }

    mutating func subtractGreen() { self.bits.write(0b101, 3) }

    mutating func colorIndexing(_ colors: Int) {
        self.bits.write(0b111, 3)
        self.bits.write(colors - 1, 8)
        self.flat(green: 3)
    }

    /// An image of one colour within another: five codes of one symbol.
    private mutating func flat(green: Int) {
        self.bits.write(0, 1)
        self.one(green)
        for _ in 0..<4 { self.one(1) }
    }

    private mutating func one(_ symbol: Int) {
        self.bits.write(0b101, 3)
        self.bits.write(symbol, 8)
    }

    private mutating func two(_ first: Int, _ second: Int) {
        self.bits.write(0b111, 3)
        self.bits.write(first, 8)
        self.bits.write(second, 8)
    }

    /// Symbols: one of each channel, which takes no bits (0), two of each, with noise to choose (1), copies of long
    /// runs (2), or colours of the cache (3).
    mutating func picture(
        columns: Int,
        rows: Int,
        cacheBits: Int,
        groups: Int,
        groupBits: Int,
        symbols: Int,
        byteCount: Int
    ) {
        self.bits.write(0, 1)
        self.bits.write(cacheBits > 0 ? 1 : 0, 1)
        if cacheBits > 0 { self.bits.write(cacheBits, 4) }
        self.bits.write(groups > 1 ? 1 : 0, 1)
        var count = 1
        if groups > 1 {
            self.bits.write(groupBits - 2, 3)
            let across = (columns + (1 << groupBits) - 1) >> groupBits
            let down = (rows + (1 << groupBits) - 1) >> groupBits
            count = min(groups, across * down)
            self.groupImage(pixels: across * down, groups: count)
        }
        for _ in 0..<count {
            guard self.bits.bytes.count < fileLimit else { break }
            self.group(symbols: symbols, cacheSize: cacheBits > 0 ? 1 << cacheBits : 0)
        }
        var noise = ByteWriter()
        switch symbols {
        case 1: noise.random(byteCount, &self.random)
        case 2:
            // A bit for a literal, then copies of 4,096 at a time: a length of 11 bits, and a distance of none.
            let (copies, literals) = (columns * rows - 1).quotientAndRemainder(dividingBy: 4_096)
            self.bits.write(0, 1)
            for _ in 0..<copies {
                self.bits.write(1, 1)
                self.bits.write(0x3FF, 10)
            }
            self.bits.write(0, literals % 32)
            for _ in 0..<literals / 32 { self.bits.write(0, 32) }
        default: noise.append(repeating: 0, count: byteCount)
        }
        for byte in noise.bytes { self.bits.write(Int(byte), 8) }
    }

    /// The image that says which codes a tile has: all numbers once, and the last number for the tiles that are left.
    private mutating func groupImage(pixels: Int, groups: Int) {
        self.bits.write(0, 1)
        // The number is in red and green: 8 bits of each.
        self.uniform(alphabet: 280)
        self.uniform(alphabet: 256)
        for _ in 0..<3 { self.one(0) }
        let green = canonicalCodes(Self.uniformLengths(280))
        let red = canonicalCodes(Self.uniformLengths(256))
        for index in 0..<pixels where self.bits.bytes.count < fileLimit {
            let number = min(index, groups - 1)
            self.bits.writeCode(green[number & 255], 8)
            self.bits.writeCode(red[number >> 8], 8)
        }
    }

    private static func uniformLengths(_ alphabet: Int) -> [Int] {
        (0..<alphabet).map { $0 < 256 ? 8 : 0 }
    }

    private mutating func uniform(alphabet: Int) { self.lengths(Self.uniformLengths(alphabet)) }

    private mutating func group(symbols: Int, cacheSize: Int) {
        switch symbols {
        case 1:
            self.two(3, 5)
            for index in 0..<3 { self.two(index, index + 1) }
            self.one(0)
        case 2:
            var green = [Int](repeating: 0, count: 280 + cacheSize)
            (green[279], green[0]) = (1, 1)
            // The shorter symbol number has the code 0: a literal is 0 then, and a copy 1.
            self.lengths(green)
            for _ in 0..<3 { self.one(1) }
            self.one(1)
        case 3 where cacheSize > 0:
            var green = [Int](repeating: 0, count: 280 + cacheSize)
            (green[0], green[280]) = (1, 1)
            self.lengths(green)
            for _ in 0..<4 { self.one(1) }
        default: for symbol in 0..<5 { self.one(symbol) }
        }
    }

    /// A code by its lengths, which are written with a code of their own.
    private mutating func lengths(_ lengths: [Int]) {
        self.bits.write(0, 1)
        self.bits.write(19 - 4, 4)
        let order = [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
        var widths = [Int](repeating: 4, count: 19)
        (widths[16], widths[17], widths[14], widths[15]) = (0, 0, 5, 5)
        for symbol in order { self.bits.write(widths[symbol], 3) }
        self.bits.write(0, 1)
        let codes = canonicalCodes(widths)
        var index = 0
        while index < lengths.count {
            var zeros = 0
            while index + zeros < lengths.count, lengths[index + zeros] == 0, zeros < 138 { zeros += 1 }
            if zeros >= 11 {
                self.bits.writeCode(codes[18], widths[18])
                self.bits.write(zeros - 11, 7)
                index += zeros
            } else {
                self.bits.writeCode(codes[lengths[index]], widths[lengths[index]])
                index += 1
            }
        }
    }
}
