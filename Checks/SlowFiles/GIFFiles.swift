// SPDX-License-Identifier: Apache-2.0

/// GIFs (GIF89a) whose codes stand for as many pixels as codes can, and whose frames are many.
enum GIFFiles: FileGenerator {
    static let coder = "gif"

    static let genes: [Gene] = [
        .logarithmic("pixels", 1...120_000_000), .linear("aspect", -12...12), .logarithmic("frames", 1...60_000),
        .linear("frameWidth", 0...100), .linear("frameHeight", 0...100), .linear("disposal", 0...5),
        .linear("transparency", 0...1), .linear("interlaced", 0...1), .linear("codes", 0...5),
        .linear("codeSize", 2...11),
        .logarithmic("codeBytes", 0...1_000_000), .linear("fill", 0...110), .linear("blockBytes", 1...255),
        .linear("localPalette", 0...1), .linear("paletteBits", 1...8), .linear("control", 0...1),
        .logarithmic("comments", 0...200_000), .linear("commentKind", 0...3), .logarithmic("commentBytes", 0...900_000),
        .linear("commentsBetween", 0...1), .linear("delay", 0...10), .linear("ending", 0...1),
    ]

    static let seeds: [[String: Int]] = [
        [
            "pixels": 100_000_000, "frames": 1, "frameWidth": 100, "frameHeight": 100, "codeSize": 8, "fill": 100,
            "blockBytes": 255,
        ],
        [
            "pixels": 100_000_000, "frames": 20, "frameWidth": 100, "frameHeight": 100, "disposal": 3, "control": 1,
            "fill": 100, "blockBytes": 255,
        ],
        ["pixels": 100_000_000, "frames": 40_000, "disposal": 3, "control": 1, "fill": 100, "blockBytes": 255],
        ["pixels": 80_000_000, "frames": 60_000, "disposal": 2, "control": 1, "fill": 0, "blockBytes": 255],
        [
            "pixels": 30_000_000, "frames": 60_000, "disposal": 1, "control": 1, "transparency": 1, "fill": 100,
            "blockBytes": 255,
        ],
        [
            "pixels": 1_000_000, "frames": 1_000, "frameWidth": 100, "frameHeight": 100, "disposal": 5, "control": 1,
            "codeSize": 8, "fill": 100, "blockBytes": 255,
        ],
        [
            "pixels": 4_000_000, "frames": 1, "frameWidth": 100, "frameHeight": 100, "codes": 1, "codeBytes": 900_000,
            "fill": 100, "blockBytes": 1,
        ],
        [
            "pixels": 4_000_000, "frames": 1, "frameWidth": 100, "frameHeight": 100, "codes": 2, "codeSize": 8,
            "codeBytes": 900_000, "fill": 100, "blockBytes": 255,
        ],
        [
            "pixels": 100_000_000, "frames": 1, "frameWidth": 100, "frameHeight": 100, "codes": 3, "codeSize": 11,
            "codeBytes": 900_000, "fill": 100, "blockBytes": 255,
        ],
        [
            "pixels": 10_000, "frames": 1, "frameWidth": 100, "frameHeight": 100, "comments": 200_000, "fill": 100,
            "blockBytes": 255,
        ],
        [
            "pixels": 10_000, "frames": 1, "frameWidth": 100, "frameHeight": 100, "comments": 1,
            "commentBytes": 900_000, "fill": 100, "blockBytes": 1,
        ],
        ["pixels": 100, "frames": 60_000, "localPalette": 1, "paletteBits": 8, "fill": 100, "blockBytes": 255],
    ]

    static func file(_ recipe: Recipe) -> [UInt8] { Writer(recipe).file() }

    private final class Writer: FileWriter {
        func file() -> [UInt8] {
            self.out.append("GIF89a")
            self.out.little(self.width, 2)
            self.out.little(self.height, 2)
            self.out.append([0x80 | UInt8(self.recipe["paletteBits"] - 1), 0, 0])
            self.palette()
            if self.recipe["frames"] > 1 {
                self.out.append([0x21, 0xFF, 11])
                self.out.append("NETSCAPE2.0")
                self.out.append([3, 1, 0, 0, 0])
            }
            if self.recipe["commentsBetween"] == 0 { self.comments(self.recipe["comments"]) }
            let width = max(1, self.width * self.recipe["frameWidth"] / 100)
            let height = max(1, self.height * self.recipe["frameHeight"] / 100)
            let codes = self.codes(pixels: width * height)
            for index in 0..<self.recipe["frames"] where self.out.count < fileLimit {
                if self.recipe["commentsBetween"] == 1 {
                    self.comments(self.recipe["comments"] / self.recipe["frames"])
                }
                self.frame(index, width: width, height: height, codes)
            }
            if self.recipe["ending"] == 0 { self.out.append(0x3B) }
            return self.out.bytes
        }

        private func palette() { self.out.random(3 << self.recipe["paletteBits"], &self.random) }

        private func comments(_ count: Int) {
            let starts: [[UInt8]] = [
                [0xFE], [0xFF, 11] + Array("XMP DataXMP".utf8), [0x01, 12] + [UInt8](repeating: 0, count: 12),
                [0xF9, 4, 0, 1, 0, 0],
            ]
            for _ in 0..<count where self.out.count < fileLimit {
                self.out.append(0x21)
                self.out.append(starts[self.recipe["commentKind"]])
                self.blocks(
                    [UInt8](repeating: 0x41, count: self.recipe["commentKind"] == 3 ? 0 : self.recipe["commentBytes"])
                )
            }
        }

        private func blocks(_ body: [UInt8]) {
            let size = self.recipe["blockBytes"]
            for start in stride(from: 0, to: body.count, by: size) where self.out.count < fileLimit {
                let part = body[start..<min(body.count, start + size)]
                self.out.append(UInt8(part.count))
                self.out.append(part)
            }
            self.out.append(0)
        }

        private func frame(_ index: Int, width: Int, height: Int, _ codes: [UInt8]) {
            let disposal = self.recipe["disposal"] > 3 ? (index + self.recipe["disposal"]) % 4 : self.recipe["disposal"]
            if self.recipe["control"] == 1 {
                self.out.append([0x21, 0xF9, 4, UInt8(disposal << 2 | self.recipe["transparency"])])
                self.out.little(self.recipe["delay"], 2)
                self.out.append([0, 0])
            }
            self.out.append(0x2C)
            self.out.little(Int.random(in: 0...(self.width - width), using: &self.random), 2)
            self.out.little(Int.random(in: 0...(self.height - height), using: &self.random), 2)
            self.out.little(width, 2)
            self.out.little(height, 2)
            let palette = self.recipe["localPalette"] == 1 ? 0x80 | self.recipe["paletteBits"] - 1 : 0
            self.out.append(UInt8(palette | self.recipe["interlaced"] << 6))
            if self.recipe["localPalette"] == 1 { self.palette() }
            self.out.append(UInt8(self.recipe["codeSize"]))
            self.blocks(codes)
        }

        /// Returns the longest possible runs (0), only clear codes (1), noise (2), the longest strings with a full
        /// table (3), single pixels (4), or no codes (5).
        private func codes(pixels: Int) -> [UInt8] {
            var bits = BitWriter()
            let size = self.recipe["codeSize"]
            let clear = 1 << size
            let limit = min(self.recipe["codeBytes"] == 0 ? fileLimit : self.recipe["codeBytes"], fileLimit)
            let wanted = pixels / 100 * self.recipe["fill"] + min(pixels, 100)
            switch self.recipe["codes"] {
            case 0, 3:
                bits.write(clear, size + 1)
                var (width, next, length, written) = (size + 1, clear + 2, 1, 0)
                bits.write(0, width)
                written += 1
                while written < wanted, bits.bytes.count < limit {
                    // The code that the reader is about to define: the last string and one pixel more.
                    let code = next < 4_096 ? next : 4_095
                    bits.write(code, width)
                    if next < 4_096 {
                        length += 1
                        next += 1
                        if next == 1 << width, width < 12 { width += 1 }
                    } else if self.recipe["codes"] == 0 {
                        bits.write(clear, width)
                        (width, next, length) = (size + 1, clear + 2, 1)
                        bits.write(0, width)
                    }
                    written += length
                }
                bits.write(clear + 1, width)
            case 1:
                for _ in 0..<min(limit * 8 / (size + 1), 1 << 20) { bits.write(clear, size + 1) }
                bits.write(clear + 1, size + 1)
            case 2:
                var noise = ByteWriter()
                noise.random(min(limit, self.recipe["codeBytes"]), &self.random)
                return noise.bytes
            case 4:
                for _ in 0..<min(wanted, limit * 4 / (size + 1)) {
                    bits.write(clear, size + 1)
                    bits.write(Int.random(in: 0..<clear, using: &self.random), size + 1)
                }
                bits.write(clear + 1, size + 1)
            default: break
            }
            bits.fillByte()
            return bits.bytes
        }
    }
}
