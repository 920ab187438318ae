// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestSupport

@testable import TintypeCommand

/// Encodes images for terminals and decodes them again.
@Suite struct GraphicsEncoderTests {
    private static let shapes = [(1, 1), (3, 2), (7, 6), (17, 13), (64, 37)]

    /// Returns an image whose samples are multiples of 51, which are whole percents and therefore exact in Sixel.
    private static func coarse(_ format: PixelFormat, _ width: Int, _ height: Int, seed: UInt64) throws -> PixelBuffer {
        var generator = SeededGenerator(seed: seed)
        return try PixelBuffer.make(format, width: width, height: height) { _, _, channel in
            channel == 3
                ? [0, 255].randomElement(using: &generator) ?? 0 : UInt8(51 * Int.random(in: 0...5, using: &generator))
        }
    }

    private static func written(_ bytes: [UInt8]) throws -> TerminalModel {
        var terminal = TerminalModel(columns: 200, rows: 60)
        try terminal.write(bytes)
        return terminal
    }

    // MARK: Kitty

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], Self.shapes)
    func `Kitty's terminals get the pixels as they are`(_ format: PixelFormat, _ shape: (Int, Int)) throws {
        let pixels = TerminalPixels(try PixelBuffer.noise(format, width: shape.0, height: shape.1))
        let terminal = try Self.written(KittyEncoder.show(pixels, id: 7))
        #expect(terminal.kitty[7]?.image == DrawnImage(pixels))
        #expect(terminal.kitty[7]?.cells == [nil, nil])
        // The cursor does not move.
        #expect(terminal.row == 0 && terminal.column == 0)
    }

    @Test func `a large image comes in chunks, and is named, scaled and taken away`() throws {
        let pixels = TerminalPixels(try PixelBuffer.noise(.rgba8, width: 90, height: 70))
        let bytes = KittyEncoder.show(pixels, id: .max, cells: CellSize(columns: 9, rows: 4))
        #expect(bytes.count > 3 * KittyEncoder.chunkSize)
        var terminal = try Self.written(bytes)
        #expect(terminal.kitty[.max]?.image == DrawnImage(pixels))
        #expect(terminal.kitty[.max]?.cells == ["9", "4"])
        try terminal.write(KittyEncoder.delete(.max))
        #expect(terminal.kitty.isEmpty)
    }

    // MARK: Sixel

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], Self.shapes)
    func `Sixel terminals get few colours as they are, and nothing where the image is transparent`(
        _ format: PixelFormat,
        _ shape: (Int, Int)
    ) throws {
        let pixels = TerminalPixels(try Self.coarse(format, shape.0, shape.1, seed: 3))
        let terminal = try Self.written(try SixelEncoder.encode(pixels, isDithered: true))
        #expect(terminal.sixel.map(\.image) == [DrawnImage(width: shape.0, height: shape.1, pixels: pixels.masked)])
    }

    @Test(arguments: [true, false]) func `many colours become 256 that are near`(_ isDithered: Bool) throws {
        let pixels = TerminalPixels(try PixelBuffer.smooth(.rgb8, width: 120, height: 80))
        #expect(Set(pixels.pixels).count > 256)
        let terminal = try Self.written(try SixelEncoder.encode(pixels, isDithered: isDithered))
        let drawn = try #require(terminal.sixel.first?.image)
        #expect(Set(drawn.pixels).count <= 256)
        var distance = 0
        for (drawn, wanted) in zip(drawn.pixels, pixels.pixels) {
            for shift in [UInt32(0), 8, 16] { distance += abs(Int(drawn >> shift & 255) - Int(wanted >> shift & 255)) }
        }
        #expect(distance / (3 * drawn.pixels.count) < 6)
    }

    @Test func `equal columns are counted, and colours that a band lacks are left out of it`() throws {
        let pixels = try PixelBuffer.make(.rgb8, width: 300, height: 12) { _, row, _ in row < 6 ? 0 : 255 }
        let bytes = try SixelEncoder.encode(TerminalPixels(pixels), isDithered: false)
        #expect(String(decoding: bytes, as: UTF8.self).hasSuffix("#0!300~-#1!300~\u{1B}\\"))
    }

    // MARK: Half blocks

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8], Self.shapes)
    func `half blocks show the pixels as they are, two in a cell`(_ format: PixelFormat, _ shape: (Int, Int)) throws {
        let pixels = TerminalPixels(try Self.coarse(format, shape.0, shape.1, seed: 5))
        let lines = BlockEncoder.lines(pixels, colors: .direct)
        let terminal = try Self.written(Array(lines.joined(separator: "\r\n".utf8)))
        let rows = (shape.1 + 1) / 2
        #expect(lines.count == rows)
        // The cells below an odd last row are empty.
        let padding = Array(repeating: UInt32(0), count: shape.1 % 2 * shape.0)
        let expected = DrawnImage(width: shape.0, height: rows * 2, pixels: pixels.masked + padding)
        #expect(try terminal.blocks(columns: shape.0, rows: rows) == expected)
    }

    @Test func `the codes of colours are written only where they change`() throws {
        let pixels = try PixelBuffer.make(.rgb8, width: 100, height: 2) { column, row, _ in
            column < 50 ? 10 : row == 0 ? 20 : 30
        }
        let lines = BlockEncoder.lines(TerminalPixels(pixels), colors: .direct)
        let blanks = String(repeating: " ", count: 50)
        let blocks = String(repeating: "\u{2580}", count: 50)
        let expected = "\u{1B}[48;2;10;10;10m\(blanks)\u{1B}[38;2;20;20;20;48;2;30;30;30m\(blocks)\u{1B}[0m"
        #expect(lines.map { String(decoding: $0, as: UTF8.self) } == [expected])
        let clear = try PixelBuffer.make(.rgba8, width: 3, height: 2) { _, _, _ in 0 }
        #expect(BlockEncoder.lines(TerminalPixels(clear), colors: .direct) == [Array("   ".utf8)])
    }

    @Test(
        arguments: [
            ([0, 0, 0], 16), ([255, 255, 255], 231), ([255, 0, 0], 196), ([95, 135, 175], 67), ([128, 128, 128], 244),
            ([8, 8, 8], 232), ([238, 238, 238], 255), ([100, 140, 170], 67), ([250, 4, 3], 196),
        ] as [([UInt8], Int)]
    )
    func `with 256 colours the nearest is taken`(_ color: [UInt8], _ index: Int) throws {
        let pixels = try PixelBuffer.make(.rgb8, width: 1, height: 2) { _, _, channel in color[channel] }
        let line = BlockEncoder.lines(TerminalPixels(pixels), colors: .palette)
        #expect(line.map { String(decoding: $0, as: UTF8.self) } == ["\u{1B}[48;5;\(index)m \u{1B}[0m"])
    }

    // MARK: Sizes

    @Test func `images fit the cells, keep their shape, and are not enlarged`() throws {
        let cell = ImageDrawing.PixelExtent(width: 10, height: 21)
        let wide = Image(pixels: try PixelBuffer.smooth(.rgb8, width: 400, height: 100))
        let icon = Image(pixels: try PixelBuffer.smooth(.rgb8, width: 5, height: 4))
        let area = CellSize(columns: 20, rows: 10)
        for graphics in GraphicsProtocol.allCases {
            let drawing = ImageDrawing(graphics, colors: .direct, cell: cell)
            let wideSize = try drawing.drawing(of: wide, in: area).size
            #expect(wideSize.columns == 20 && (2...3).contains(wideSize.rows), "\(graphics): \(wideSize)")
            let iconSize = try drawing.drawing(of: icon, in: area).size
            #expect(iconSize == (graphics == .blocks ? CellSize(columns: 5, rows: 2) : CellSize(columns: 1, rows: 1)))
            let tall = Image(pixels: try PixelBuffer.smooth(.rgb8, width: 100, height: 4_000))
            #expect(try drawing.drawing(of: tall, in: area).size.rows == 10)
        }
        // A band of six rows that extends below the last cell would scroll the terminal.
        let room = ImageDrawing(.sixel, colors: .direct, cell: cell).room(in: area)
        #expect(room.height == 210 && room.height % 6 == 0)
        #expect(ImageDrawing(.sixel, colors: .direct, cell: nil).room(in: area) == (200, 198))
        #expect(ImageDrawing(.blocks, colors: .direct, cell: cell).room(in: area) == (20, 21))
    }

    @Test(arguments: 1...60, [(80, 23), (200, 50), (20, 5), (1, 1)])
    func `places of a page lie within it and beside each other`(_ count: Int, _ area: (Int, Int)) {
        let area = CellSize(columns: area.0, rows: area.1)
        let places = ScreenLayout(count, in: area, cellRatio: 2).places
        #expect((1...count).contains(places.count))
        if count == 1 { #expect(places[0].size == area && !places[0].hasLabel) }
        var taken: Set<CellSize> = []
        for place in places where area.rows > 1 {
            #expect(place.column + place.size.columns <= area.columns)
            #expect(place.row + place.size.rows + (place.hasLabel ? 1 : 0) <= area.rows)
            for row in place.row..<place.row + place.size.rows + (place.hasLabel ? 1 : 0) {
                for column in place.column..<place.column + place.size.columns {
                    #expect(taken.insert(CellSize(columns: column, rows: row)).inserted)
                }
            }
        }
    }
}

/// A terminal's answers to queries, valid or not.
@Suite struct TerminalAnswersTests {
    private static func read(_ text: String) -> TerminalAnswers {
        var answers = TerminalAnswers()
        answers.read(text.utf8)
        return answers
    }

    @Test func `the answers of a terminal that knows all are understood`() {
        let text = "\u{1B}_Gi=31;OK\u{1B}\\\u{1B}[6;21;10t\u{1B}[4;504;800t\u{1B}[?62;4;22c"
        // The answers may be cut anywhere.
        for cut in 0...text.utf8.count {
            var answers = TerminalAnswers()
            answers.read(Array(text.utf8.prefix(cut)).dropLast(cut > 0 && text.utf8.prefix(cut).last == 0x1B ? 1 : 0))
            answers.read(Array(text.utf8.dropFirst(text.utf8.prefix(cut).last == 0x1B ? cut - 1 : cut)))
            #expect(answers.knowsKitty && answers.knowsSixel && answers.isComplete && !answers.hasKey, "cut at \(cut)")
            #expect(answers.cell?.width == 10 && answers.cell?.height == 21)
            #expect(answers.window?.width == 800 && answers.window?.height == 504)
        }
    }

    @Test(arguments: [
        "\u{1B}[?1;2c", "\u{1B}[?6c", "\u{1B}[?4;6c", "\u{1B}_Gi=31;ENOTSUPPORTED:no\u{1B}\\\u{1B}[?62;22c",
        "\u{1B}_Gi=32;OK\u{1B}\\\u{1B}[?62c", "\u{1B}_Xi=31;OK\u{1B}\\\u{1B}[?62c", "\u{1B}]0;4\u{07}\u{1B}[?62c",
        "\u{1B}[6;0;10t\u{1B}[6;99999999;10t\u{1B}[6;1t\u{1B}[?62c", "\u{1B}[6;99999999999999999999;10t\u{1B}[?62c",
    ])
    func `what says nothing of graphics is not taken for it`(_ text: String) {
        let answers = Self.read(text)
        #expect(!answers.knowsKitty && !answers.knowsSixel && answers.cell == nil && answers.window == nil)
        #expect(answers.isComplete && !answers.hasKey)
    }

    @Test(arguments: ["q", "\u{1B}", "\u{1B}[A", "\u{1B}OP", " ", "\n", "\u{1B}[?62c ", "\u{1B}[1;5C"])
    func `keys are told from answers`(_ text: String) {
        #expect(Self.read(text).hasKey)
    }

    @Test(arguments: UInt64(1)...40) func `noise is no harm`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("\u{1B}[_]P\\?;0123456789cGti=OK,".utf8)
        var answers = TerminalAnswers()
        for _ in 0..<200 {
            let count = Int.random(in: 1...80, using: &generator)
            answers.read((0..<count).compactMap { _ in alphabet.randomElement(using: &generator) })
        }
        // A string without an end does not grow.
        answers.read(Array("\u{1B}_".utf8) + Array(repeating: UInt8(ascii: "G"), count: 1 << 20))
        answers.read("\u{1B}\\\u{1B}[?62;4c".utf8)
        #expect(answers.isComplete && answers.knowsSixel)
    }
}
