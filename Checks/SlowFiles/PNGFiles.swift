// SPDX-License-Identifier: Apache-2.0

import CTintypeDeflate
import TintypeTestSupport

/// PNGs and APNGs (W3C PNG, third edition) that stand for far more than they store.
enum PNGFiles: FileGenerator {
    static let coder = "png"

    static let genes: [Gene] =
        [
            .logarithmic("pixels", 1...120_000_000), .linear("aspect", -14...14), .linear("colorType", 0...4),
            .linear("depth", 0...4), .linear("interlaced", 0...1), .linear("content", 0...3), .linear("filter", 0...5),
            .linear("matchLength", 3...258), .logarithmic("noiseBytes", 0...1_000_000), .linear("fill", 0...110),
            .logarithmic("emptyBlocks", 0...200_000), .linear("emptyKind", 0...2),
            .logarithmic("chunkBytes", 1...1_000_000), .logarithmic("emptyChunks", 0...80_000),
            .linear("transparency", 0...1), .logarithmic("paletteColors", 0...256),
            .logarithmic("segments", 0...80_000), .linear("segmentKind", 0...8),
            .logarithmic("segmentBytes", 0...900_000),
            .logarithmic("inflatedBytes", 0...800_000_000), .linear("segmentsBehind", 0...1),
            .logarithmic("frames", 0...40_000), .logarithmic("declaredFrames", 0...2_000_000_000),
            .linear("frameWidth", 0...100), .linear("frameHeight", 0...100), .linear("disposal", 0...3),
            .linear("blend", 0...1), .linear("frameData", 0...2), .linear("order", 0...2),
        ] + ProfileFiles.genes

    static let seeds: [[String: Int]] = [
        ["pixels": 100_000_000, "colorType": 0, "depth": 3, "chunkBytes": 1_000_000, "fill": 100],
        ["pixels": 100_000_000, "colorType": 4, "depth": 3, "filter": 4, "chunkBytes": 1_000_000, "fill": 100],
        [
            "pixels": 100_000_000, "colorType": 4, "depth": 4, "filter": 4, "interlaced": 1, "chunkBytes": 1_000_000,
            "fill": 100,
        ],
        [
            "pixels": 100_000_000, "colorType": 2, "depth": 0, "paletteColors": 2, "interlaced": 1, "chunkBytes": 9_000,
            "fill": 100,
        ],
        ["pixels": 4_000_000, "colorType": 1, "depth": 3, "filter": 5, "content": 1, "chunkBytes": 1, "fill": 100],
        [
            "pixels": 10_000, "colorType": 1, "depth": 3, "emptyBlocks": 30_000, "emptyKind": 2,
            "chunkBytes": 1_000_000, "fill": 100,
        ],
        ["pixels": 10_000, "emptyChunks": 80_000, "chunkBytes": 1_000_000, "fill": 100],
        ["pixels": 10_000, "segments": 70_000, "chunkBytes": 1_000_000, "fill": 100],
        [
            "pixels": 10_000, "segments": 2, "segmentKind": 2, "inflatedBytes": 400_000_000, "chunkBytes": 1_000_000,
            "fill": 100,
        ],
        [
            "pixels": 10_000, "segments": 1, "segmentKind": 3, "inflatedBytes": 400_000_000, "chunkBytes": 1_000_000,
            "fill": 100,
        ],
        [
            "pixels": 1_000_000, "colorType": 1, "depth": 3, "profileKind": 3, "profileBytes": 900_000,
            "chunkBytes": 1_000_000, "fill": 100,
        ],
        [
            "pixels": 1_000_000, "colorType": 1, "depth": 3, "profileKind": 2, "profileBytes": 900_000,
            "chunkBytes": 1_000_000, "fill": 100,
        ],
        // Small frames on large canvases with different disposal methods, and large frames that cost nothing to store.
        [
            "pixels": 80_000_000, "colorType": 4, "depth": 3, "frames": 3_000, "disposal": 2, "chunkBytes": 1_000_000,
            "fill": 100,
        ],
        [
            "pixels": 25_000_000, "colorType": 4, "depth": 3, "frames": 9, "frameWidth": 100, "frameHeight": 100,
            "disposal": 2, "blend": 1, "chunkBytes": 1_000_000, "fill": 100,
        ],
        [
            "pixels": 4_000_000, "colorType": 0, "depth": 0, "frames": 300, "frameWidth": 100, "frameHeight": 100,
            "disposal": 3, "chunkBytes": 1_000_000, "fill": 100,
        ],
        ["pixels": 100, "colorType": 0, "depth": 3, "frames": 10_000, "chunkBytes": 1_000_000, "fill": 100],
        [
            "pixels": 100, "colorType": 0, "depth": 3, "frames": 1, "declaredFrames": 2_000_000_000,
            "chunkBytes": 1_000_000, "fill": 100,
        ],
    ]

    static func file(_ recipe: Recipe) -> [UInt8] { Writer(recipe).file() }

    private final class Writer: FileWriter {
        private let colorType: Int
        private let depth: Int
        private var sequence = 0

        init(_ recipe: Recipe) {
            self.colorType = [0, 2, 3, 4, 6][recipe["colorType"]]
            let depth = [1, 2, 4, 8, 16][recipe["depth"]]
            switch self.colorType {
            case 0: self.depth = depth
            case 3: self.depth = min(8, depth)
            default: self.depth = max(8, depth)
            }
            super.init(recipe)
        }

        func file() -> [UInt8] {
            self.out.append([0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10])
            var header = ByteWriter()
            header.big(self.width, 4)
            header.big(self.height, 4)
            header.append([UInt8(self.depth), UInt8(self.colorType), 0, 0, UInt8(self.recipe["interlaced"])])
            self.chunk("IHDR", header.bytes)
            let frames = self.recipe["frames"]
            let declared = self.recipe["declaredFrames"] > 0 ? self.recipe["declaredFrames"] : frames
            // The control chunk comes before the default image or after it, or the file has no default image.
            let isAnimated = frames > 0
            if isAnimated, self.recipe["order"] == 1 { self.frameControl(isFirst: true) }
            if isAnimated {
                var control = ByteWriter()
                control.big(declared, 4)
                control.big(0, 4)
                self.chunk("acTL", control.bytes)
            }
            self.profile()
            if self.recipe["segmentsBehind"] == 0 { self.floods() }
            self.palette()
            if isAnimated, self.recipe["order"] == 0 { self.frameControl(isFirst: true) }
            self.split("IDAT", self.image(width: self.width, height: self.height), prefix: false)
            for _ in 0..<self.recipe["emptyChunks"] where self.out.count < fileLimit { self.chunk("IDAT", []) }
            if self.recipe["segmentsBehind"] == 1 { self.floods() }
            if isAnimated { self.frames() }
            self.chunk("IEND", [])
            return self.out.bytes
        }

        private func chunk(_ name: StaticString, _ body: [UInt8]) {
            var named = ByteWriter()
            named.append(name)
            named.append(body)
            self.out.big(body.count, 4)
            self.out.append(named.bytes)
            self.out.big(checksum(named.bytes), 4)
        }

        private func split(_ name: StaticString, _ body: [UInt8], prefix: Bool) {
            let size = self.recipe["chunkBytes"]
            for start in stride(from: 0, to: max(1, body.count), by: size) where self.out.count < fileLimit {
                let part = body[start..<min(body.count, start + size)]
                guard prefix else {
                    self.chunk(name, Array(part))
                    continue
                }
                var numbered = ByteWriter()
                numbered.big(self.sequence, 4)
                numbered.append(part)
                self.chunk(name, numbered.bytes)
                self.sequence += 1
            }
        }

        private func palette() {
            if self.colorType == 3 || self.recipe["paletteColors"] > 0 && self.colorType & 2 != 0 {
                let colors = min(max(self.recipe["paletteColors"], 1), 1 << min(8, self.depth))
                var palette = ByteWriter()
                palette.random(3 * colors, &self.random)
                self.chunk("PLTE", palette.bytes)
                if self.colorType == 3, self.recipe["transparency"] == 1 {
                    self.chunk("tRNS", [UInt8](repeating: 100, count: colors))
                }
            }
            if self.recipe["transparency"] == 1, [0, 2].contains(self.colorType) {
                self.chunk("tRNS", [UInt8](repeating: 0, count: self.colorType == 0 ? 2 : 6))
            }
        }

        private func profile() {
            let profile = ProfileFiles.profile(self.recipe, limit: 30_000_000)
            guard !profile.isEmpty else { return }
            self.chunk("iCCP", Array("p\0\0".utf8) + Self.deflated(profile))
        }

        private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
            guard let compressor = libdeflate_alloc_compressor(1) else { return [] }
            defer { libdeflate_free_compressor(compressor) }
            var output = [UInt8](repeating: 0, count: libdeflate_zlib_compress_bound(compressor, bytes.count))
            let count = bytes.withUnsafeBytes { input in
                output.withUnsafeMutableBytes {
                    libdeflate_zlib_compress(compressor, input.baseAddress, input.count, $0.baseAddress, $0.count)
                }
            }
            return Array(output.prefix(count))
        }

        private func floods() {
            let kind = self.recipe["segmentKind"]
            let names: [StaticString] = ["tEXt", "vpAg", "zTXt", "iCCP", "iTXt", "eXIf", "gAMA", "sPLT", "fcTL"]
            var body = ByteWriter()
            switch kind {
            case 2, 3, 4:
                body.append(kind == 4 ? "t\0\u{1}\0\0\0" : "t\0\0")
                var stream = DeflateWriter()
                stream.run(of: 0, count: self.recipe["inflatedBytes"])
                body.append(stream.finished())
            case 5:
                body.append("MM\0*\0\0\0\u{8}")
                body.append(repeating: 1, count: self.recipe["segmentBytes"])
            case 6: body.big(100_000, 4)
            default:
                body.append("t\0")
                body.append(repeating: 0x41, count: self.recipe["segmentBytes"])
            }
            for _ in 0..<self.recipe["segments"] where self.out.count < fileLimit {
                self.chunk(names[kind], body.bytes)
            }
        }

        // MARK: Pixels

        private func lineBytes(_ width: Int) -> Int {
            let channels = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][self.colorType] ?? 1
            return (width * channels * self.depth + 7) / 8
        }

        /// The bytes of the rows with their filters, in all passes.
        private func inflatedCount(width: Int, height: Int) -> Int {
            guard self.recipe["interlaced"] == 1 else { return height * (self.lineBytes(width) + 1) }
            let passes = [
                (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2),
            ]
            return passes.reduce(0) { sum, pass in
                let columns = max(0, width - pass.0 + pass.2 - 1) / pass.2
                let rows = max(0, height - pass.1 + pass.3 - 1) / pass.3
                return sum + (columns == 0 ? 0 : rows * (self.lineBytes(columns) + 1))
            }
        }

        private func image(width: Int, height: Int) -> [UInt8] {
            var stream = DeflateWriter()
            let room = max(0, fileLimit - self.out.count - 100)
            if self.recipe["emptyBlocks"] > 0 {
                let sizes = [5, 2, 60]
                let blocks = min(self.recipe["emptyBlocks"], room / sizes[self.recipe["emptyKind"]])
                stream.emptyBlocks(blocks, kind: self.recipe["emptyKind"])
            }
            let count = self.inflatedCount(width: width, height: height) * self.recipe["fill"] / 100
            let filter = UInt8(self.recipe["filter"])
            switch self.recipe["content"] {
            case 0:
                // The filter's number is also the sample.
                stream.run(of: filter, count: max(count, min(1_000, self.inflatedCount(width: width, height: height))))
            case 1:
                var line = ByteWriter()
                line.append(filter)
                line.random(min(self.lineBytes(width), 32_000, room), &self.random)
                stream.pattern(line.bytes, repeated: count / line.count, length: self.recipe["matchLength"], room: room)
            case 2:
                // Rows of noise, each with its filter, and then the end of the data or zeros.
                var rows = ByteWriter()
                let line = self.lineBytes(width)
                while rows.count + line < min(self.recipe["noiseBytes"], room) {
                    rows.append(filter > 4 ? UInt8.random(in: 0...4, using: &self.random) : filter)
                    rows.random(line, &self.random)
                }
                stream.stored(rows.bytes)
                stream.run(of: 0, count: max(0, count - rows.count))
            default:
                stream.run(of: 0, count: count / 2)
                stream.run(of: 4, count: count - count / 2)
            }
            return stream.finished()
        }

        // MARK: Frames

        private var frameSize: (width: Int, height: Int) {
            (
                max(1, self.width * self.recipe["frameWidth"] / 100),
                max(1, self.height * self.recipe["frameHeight"] / 100)
            )
        }

        private func frameControl(isFirst: Bool) {
            let size = isFirst ? (self.width, self.height) : self.frameSize
            var control = ByteWriter()
            control.big(self.sequence, 4)
            control.big(size.0, 4)
            control.big(size.1, 4)
            control.big(isFirst ? 0 : Int.random(in: 0...(self.width - size.0), using: &self.random), 4)
            control.big(isFirst ? 0 : Int.random(in: 0...(self.height - size.1), using: &self.random), 4)
            control.big(10, 2)
            control.big(100, 2)
            let disposal = self.recipe["disposal"] == 3 ? self.sequence % 3 : self.recipe["disposal"]
            control.append([UInt8(disposal), UInt8(self.recipe["blend"])])
            self.chunk("fcTL", control.bytes)
            self.sequence += 1
        }

        private func frames() {
            let size = self.frameSize
            let data = self.image(width: size.width, height: size.height)
            for index in 0..<self.recipe["frames"] where self.out.count < fileLimit {
                if index > 0 || self.recipe["order"] == 2 { self.frameControl(isFirst: false) }
                guard index > 0 || self.recipe["order"] == 2 else { continue }
                switch self.recipe["frameData"] {
                case 0: self.split("fdAT", data, prefix: true)
                case 1: self.split("fdAT", Array(data.prefix(data.count / 2)), prefix: true)
                default: self.split("fdAT", [], prefix: true)
                }
            }
        }
    }
}
