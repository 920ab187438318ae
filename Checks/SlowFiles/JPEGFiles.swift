// SPDX-License-Identifier: Apache-2.0

import TintypeTestSupport

/// JPEGs (ITU-T T.81) whose scans, tables and segments are many, and whose data is little.
enum JPEGFiles: FileGenerator {
    static let coder = "jpeg"

    static let genes: [Gene] =
        [
            .logarithmic("pixels", 1...120_000_000), .linear("aspect", -14...14), .linear("process", 0...4),
            .linear("components", 0...2), .linear("sampling", 0...15), .linear("adobe", 0...3),
            .logarithmic("scans", 1...3_000), .linear("script", 0...5), .linear("interleaved", 0...1),
            .linear("data", 0...4), .logarithmic("dataBytes", 0...1_000_000), .linear("fill", 0...100),
            .linear("zeroCode", 0...5), .logarithmic("restart", 0...65_535), .linear("restartMarkers", 0...1),
            .linear("band", 1...63), .linear("bandWidth", 0...62), .linear("quantizer", 1...255),
            .logarithmic("tables", 0...5_000), .logarithmic("segments", 0...50_000), .linear("segmentKind", 0...6),
            .logarithmic("segmentBytes", 0...65_533), .linear("segmentsBetween", 0...1),
            .logarithmic("padding", 0...900_000), .linear("ending", 0...2),
        ] + ProfileFiles.genes

    static let seeds: [[String: Int]] = [
        // Refinements of the coefficients of one flat component: each is some bytes, and a walk over all blocks.
        ["pixels": 100_000_000, "process": 2, "scans": 500, "script": 2, "data": 1, "fill": 100, "zeroCode": 1],
        ["pixels": 100_000_000, "process": 2, "scans": 2_000, "script": 2, "data": 0, "zeroCode": 1],
        ["pixels": 100_000_000, "process": 2, "scans": 60, "script": 1, "data": 1, "fill": 100, "zeroCode": 1],
        ["pixels": 60_000_000, "process": 2, "components": 1, "scans": 100, "script": 3, "data": 1, "fill": 100],
        ["pixels": 100_000_000, "process": 0, "components": 1, "sampling": 10, "script": 0, "data": 1, "fill": 100],
        ["pixels": 100_000_000, "process": 0, "components": 2, "adobe": 3, "script": 0, "data": 1, "fill": 60],
        // Arithmetic coding continues to decode zeros after the end of the data.
        ["pixels": 100_000_000, "process": 3, "components": 1, "scans": 1, "script": 0, "data": 2, "dataBytes": 900],
        ["pixels": 100_000_000, "process": 4, "components": 0, "scans": 100, "script": 1, "data": 2, "dataBytes": 90],
        ["pixels": 4_000_000, "process": 0, "components": 1, "data": 2, "dataBytes": 900_000, "restart": 1],
        ["pixels": 10_000, "segments": 40_000, "segmentKind": 1, "segmentBytes": 2, "data": 1, "fill": 100],
        ["pixels": 10_000, "tables": 5_000, "data": 1, "fill": 100],
        ["pixels": 10_000, "padding": 900_000, "data": 1, "fill": 100],
        ["pixels": 1_000_000, "components": 1, "profileKind": 3, "profileBytes": 900_000, "data": 1, "fill": 100],
        ["pixels": 1_000_000, "components": 1, "profileKind": 2, "profileBytes": 900_000, "data": 1, "fill": 100],
    ]

    static func file(_ recipe: Recipe) -> [UInt8] { Writer(recipe).file() }

    private final class Writer: FileWriter {
        private let componentCount: Int
        /// The sampling factors of the first component.
        ///
        /// The other components have 1.
        private let factors: (across: Int, down: Int)
        private let isProgressive: Bool
        private let isArithmetic: Bool

        init(_ recipe: Recipe) {
            self.componentCount = [1, 3, 4][recipe["components"]]
            self.factors = (recipe["sampling"] & 3 + 1, recipe["sampling"] >> 2 + 1)
            self.isProgressive = [2, 4].contains(recipe["process"])
            self.isArithmetic = recipe["process"] >= 3
            super.init(recipe)
        }

        func file() -> [UInt8] {
            self.out.append([0xFF, 0xD8])
            self.profile()
            if self.recipe["adobe"] > 0 {
                var adobe = ByteWriter()
                adobe.append("Adobe\0d\0\0\0\0")
                adobe.append(UInt8(self.recipe["adobe"] - 1))
                self.segment(0xEE, adobe.bytes)
            }
            if self.recipe["segmentsBetween"] == 0 { self.floods() }
            self.out.append(repeating: 0xFF, count: self.recipe["padding"])
            self.segment(0xDB, [0] + [UInt8](repeating: UInt8(self.recipe["quantizer"]), count: 64))
            self.frame()
            self.tables()
            let scans = self.isProgressive ? self.recipe["scans"] : min(self.recipe["scans"], self.componentCount)
            for index in 0..<scans where self.out.count < fileLimit {
                self.scan(index)
                if index == 0, self.recipe["segmentsBetween"] == 1 { self.floods() }
            }
            switch self.recipe["ending"] {
            case 0: self.out.append([0xFF, 0xD9])
            case 1: self.out.append([0xFF, 0xD9, 0xFF, 0xD8, 0xFF])
            default: break
            }
            return self.out.bytes
        }

        private func segment(_ marker: UInt8, _ body: [UInt8]) {
            self.out.append([0xFF, marker])
            self.out.big(body.count + 2, 2)
            self.out.append(body)
        }

        private func profile() {
            let profile = ProfileFiles.profile(self.recipe, limit: 900_000)
            guard !profile.isEmpty else { return }
            let pieces = (profile.count + 65_518) / 65_519
            for piece in 0..<pieces {
                let part = profile[piece * 65_519..<min(profile.count, (piece + 1) * 65_519)]
                self.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [UInt8(piece + 1), UInt8(min(pieces, 255))] + part)
            }
        }

        private func frame() {
            var frame = ByteWriter()
            frame.append(8)
            frame.big(self.height, 2)
            frame.big(self.width, 2)
            frame.append(UInt8(self.componentCount))
            for index in 0..<self.componentCount {
                let factors = index == 0 ? self.factors.across << 4 | self.factors.down : 0x11
                frame.append([UInt8(index + 1), UInt8(factors), 0])
            }
            self.segment([0xC0, 0xC1, 0xC2, 0xC9, 0xCA][self.recipe["process"]], frame.bytes)
            if self.recipe["restart"] > 0 {
                self.segment(0xDD, [UInt8(self.recipe["restart"] >> 8), UInt8(self.recipe["restart"] & 255)])
            }
        }

        /// Codes whose shortest, one zero bit, is the symbol that costs most for its bits: zeros are then the data.
        private func tables() {
            guard !self.isArithmetic else { return }
            // The end of a block, of 16,384 and of 2 blocks, sixteen zeros, and coefficients.
            let first = [0x00, 0xE0, 0xF0, 0x01, 0x11, 0x10][self.recipe["zeroCode"]]
            let rest = [0x00, 0x01, 0x02, 0x03, 0x11, 0xF0, 0xE0, 0x10].filter { $0 != first }
            self.segment(0xC4, Self.table(0x00, [0, 1, 2, 3, 4, 5, 6, 7]))
            self.segment(0xC4, Self.table(0x10, [first] + rest))
        }

        /// A table in which the code of symbol n has n + 1 bits.
        private static func table(_ number: UInt8, _ symbols: [Int]) -> [UInt8] {
            let counts = (1...16).map { UInt8($0 <= symbols.count ? 1 : 0) }
            return [number] + counts + symbols.map { UInt8($0) }
        }

        private func floods() {
            for index in 0..<self.recipe["tables"] where self.out.count < fileLimit {
                if index % 2 == 0 { self.tables() } else { self.segment(0xDB, [0] + [UInt8](repeating: 1, count: 64)) }
            }
            let kind = self.recipe["segmentKind"]
            let names = [
                "", "", "Exif\0\0MM\0*\0\0\0\u{8}", "http://ns.adobe.com/xap/1.0/\0", "ICC_PROFILE\0\u{1}\u{1}", "", "",
            ]
            let marker = [0xFE, 0xE5, 0xE1, 0xE1, 0xE2, 0xDD, 0xEE][kind]
            for _ in 0..<self.recipe["segments"] where self.out.count < fileLimit {
                var body = ByteWriter()
                body.append(names[kind].utf8)
                if kind == 5 { body.big(0, 2) }
                if self.recipe["segmentBytes"] > body.count {
                    body.append(
                        repeating: UInt8(truncatingIfNeeded: kind),
                        count: self.recipe["segmentBytes"] - body.count
                    )
                }
                self.segment(UInt8(marker), body.bytes)
            }
        }

        // MARK: Scans

        private func scan(_ index: Int) {
            var components = Array(0..<self.componentCount)
            var (start, end, high, low) = (0, 63, 0, 0)
            if self.isProgressive {
                let last = min(63, self.recipe["band"] + self.recipe["bandWidth"])
                switch self.recipe["script"] {
                case 0 where index > 0, 2 where index > 0:
                    // Refinements of a band, over and over.
                    (start, end, high, low) = (self.recipe["band"], last, 1, 0)
                case 1 where index > 0:
                    (start, end, high, low) = (1, 63, max(0, 14 - index % 14), max(0, 13 - index % 14))
                case 3 where index > 0:
                    // Each coefficient by itself.
                    (start, end) = (index % 63 + 1, index % 63 + 1)
                case 4 where index > 0: (start, end, high, low) = (0, 0, 1, 0)
                case 5 where index > 0:
                    start = Int.random(in: 1...63, using: &self.random)
                    end = Int.random(in: start...63, using: &self.random)
                    low = Int.random(in: 0...2, using: &self.random)
                    high = Bool.random(using: &self.random) ? low + 1 : 0
                default: (start, end, high, low) = (0, 0, 0, 1)
                }
            }
            if start > 0
                || self.recipe["interleaved"] == 0 && (self.isProgressive ? start > 0 : self.recipe["scans"] > 1)
            {
                components = [index % self.componentCount]
            }
            var header = ByteWriter()
            header.append(UInt8(components.count))
            for component in components { header.append([UInt8(component + 1), 0]) }
            header.append([UInt8(start), UInt8(end), UInt8(high << 4 | low)])
            self.segment(0xDA, header.bytes)
            self.data(blocks: self.blockCount(components), isDC: start == 0, end: end)
        }

        private func blockCount(_ components: [Int]) -> Int {
            let across = (self.width + 8 * self.factors.across - 1) / (8 * self.factors.across)
            let down = (self.height + 8 * self.factors.down - 1) / (8 * self.factors.down)
            let units = across * down
            return components.reduce(0) { $0 + units * ($1 == 0 ? self.factors.across * self.factors.down : 1) }
        }

        /// Writes no data (0), as many zeros as the blocks need (1), noise (2), or zeros or ones of a size (3, 4).
        private func data(blocks: Int, isDC: Bool, end: Int) {
            let room = max(0, fileLimit - self.out.count - 2)
            var body = ByteWriter()
            switch self.recipe["data"] {
            case 1:
                let isRun = self.recipe["zeroCode"] == 1
                let runs = (blocks + 16_383) / 16_384 * 15
                let bits: Int
                switch (isDC, end > 0) {
                case (true, true): bits = blocks * (self.recipe["zeroCode"] == 2 ? 5 : 2)
                case (true, false): bits = blocks
                case (false, _): bits = isRun ? runs : blocks
                }
                body.append(repeating: 0, count: min(room, (bits / 8 + 1) * self.recipe["fill"] / 100))
            case 2:
                body.random(min(room, self.recipe["dataBytes"]), &self.random)
            case 3: body.append(repeating: 0, count: min(room, self.recipe["dataBytes"]))
            case 4: body.append(repeating: 0xFE, count: min(room, self.recipe["dataBytes"]))
            default: break
            }
            guard self.recipe["restart"] > 0, self.recipe["restartMarkers"] == 1 else {
                // Bytes that look like a marker are data.
                for byte in body.bytes {
                    self.out.append(byte)
                    if byte == 0xFF { self.out.append(0) }
                }
                return
            }
            let interval = max(1, self.recipe["restart"] / 4)
            for (index, byte) in body.bytes.enumerated() where self.out.count < fileLimit {
                self.out.append(byte == 0xFF ? 0 : byte)
                if index % interval == interval - 1 { self.out.append([0xFF, 0xD0 + UInt8(index / interval % 8)]) }
            }
        }
    }
}
