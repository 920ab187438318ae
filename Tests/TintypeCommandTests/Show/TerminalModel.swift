// SPDX-License-Identifier: Apache-2.0

import Testing

/// The content of a terminal after output, as cells of text and images at cells.
///
/// It knows the codes that draw images, and throws an error for any other code.
struct TerminalModel {
    struct Cell: Equatable {
        var character: Character = " "
        var foreground: UInt32?
        var background: UInt32?
    }

    /// An image at its position.
    struct Placed: Equatable {
        var row: Int
        let column: Int
        let image: DrawnImage
        /// The columns and rows to which the image is scaled, if the code gives them.
        var cells: [String?] = [nil, nil]
    }

    let columns: Int
    let rows: Int
    private(set) var cells: [[Cell]]
    private(set) var row = 0
    private(set) var column = 0
    private(set) var isCursorVisible = true
    /// Kitty's images that are currently visible, by their numbers.
    private(set) var kitty: [UInt32: Placed] = [:]
    /// The number of images so far in Kitty's protocol.
    private(set) var kittyCount = 0
    /// All Sixel images so far.
    private(set) var sixel: [Placed] = []
    /// Whether a code has used an indexed colour of the palette of 256.
    private(set) var hasIndexedColors = false
    private var foreground: UInt32?
    private var background: UInt32?
    private var remembered = (row: 0, column: 0)
    private var kittyKeys: [String: String] = [:]
    private var kittyPayload: [UInt8] = []

    init(columns: Int = 80, rows: Int = 24) {
        self.columns = columns
        self.rows = rows
        self.cells = Array(repeating: Array(repeating: Cell(), count: columns), count: rows)
    }

    /// The lines of text, without blanks at their ends.
    var lines: [String] {
        self.cells.map { row in
            let text = String(row.map(\.character))
            return String(text.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// Returns the pixels of half blocks in some cells.
    func blocks(row: Int = 0, column: Int = 0, columns: Int, rows: Int) throws -> DrawnImage {
        var image = DrawnImage(width: columns, height: rows * 2, pixels: [])
        for half in 0..<rows * 2 {
            for place in column..<column + columns {
                let cell = self.cells[row + half / 2][place]
                let isUpper = half % 2 == 0
                let color: UInt32? =
                    switch cell.character {
                    case " ": cell.background
                    case "\u{2580}": isUpper ? cell.foreground : cell.background
                    case "\u{2584}": isUpper ? cell.background : cell.foreground
                    default: throw TerminalModelError(description: "\(cell.character) is no half block")
                    }
                image.pixels.append(color.map { 0xFF00_0000 | $0 } ?? 0)
            }
        }
        return image
    }

    mutating func write(_ bytes: [UInt8]) throws {
        var reader = ByteReader(bytes[...])
        while let byte = reader.take() {
            switch byte {
            case 0x1B: try self.escape(&reader)
            case UInt8(ascii: "\r"): self.column = 0
            case UInt8(ascii: "\n"): self.lineFeed()
            default:
                try #require(byte >= 0x20, "control code \(byte)")
                let rest = reader.take { $0 & 0xC0 == 0x80 }
                self.put(try #require(String(decoding: [byte] + rest, as: UTF8.self).first))
            }
        }
    }

    private mutating func put(_ character: Character) {
        self.cells[self.row][self.column] = Cell(
            character: character,
            foreground: self.foreground,
            background: self.background
        )
        // The cursor never leaves the last column, because the command's lines are not longer.
        self.column = min(self.columns - 1, self.column + 1)
    }

    private mutating func lineFeed() {
        guard self.row == self.rows - 1 else {
            self.row += 1
            return
        }
        self.cells.removeFirst()
        self.cells.append(Array(repeating: Cell(), count: self.columns))
        for id in self.kitty.keys { self.kitty[id]?.row -= 1 }
        for index in self.sixel.indices { self.sixel[index].row -= 1 }
    }

    private mutating func escape(_ reader: inout ByteReader) throws {
        switch reader.take() {
        case UInt8(ascii: "7"): self.remembered = (self.row, self.column)
        case UInt8(ascii: "8"): (self.row, self.column) = self.remembered
        case UInt8(ascii: "["): try self.control(&reader)
        case UInt8(ascii: "P"):
            let image = try DrawnImage(sixel: try reader.take(through: [0x1B, UInt8(ascii: "\\")]))
            self.sixel.append(Placed(row: self.row, column: self.column, image: image))
        case UInt8(ascii: "_"):
            let body = try reader.take(through: [0x1B, UInt8(ascii: "\\")])
            try #require(body.first == UInt8(ascii: "G"))
            try self.graphics(body.dropFirst())
        case let other: throw TerminalModelError(description: "ESC \(String(describing: other))")
        }
    }

    private mutating func control(_ reader: inout ByteReader) throws {
        if reader.next == UInt8(ascii: "?") {
            _ = reader.take()
            try #require(reader.numbers() == [25])
            let final = reader.take()
            try #require(final == UInt8(ascii: "h") || final == UInt8(ascii: "l"))
            self.isCursorVisible = final == UInt8(ascii: "h")
            return
        }
        let numbers = reader.numbers()
        let count = max(1, numbers.first ?? 1)
        switch reader.take().map({ Character(UnicodeScalar($0)) }) {
        case "A": self.row = max(0, self.row - count)
        case "B": self.row = min(self.rows - 1, self.row + count)
        case "C": self.column = min(self.columns - 1, self.column + count)
        case "X":
            for place in self.column..<min(self.columns, self.column + count) {
                self.cells[self.row][place] = Cell(background: self.background)
            }
        case "m": try self.setColors(numbers)
        // PseudoTerminal answers these queries for the terminal's type and size.
        case "c": try #require(numbers == [0] || numbers.isEmpty)
        case "t": try #require(numbers == [14] || numbers == [16])
        case let other: throw TerminalModelError(description: "CSI \(numbers) \(String(describing: other))")
        }
    }

    private mutating func setColors(_ numbers: [Int]) throws {
        var numbers = numbers[...]
        while let number = numbers.popFirst() {
            switch number {
            case 0: (self.foreground, self.background) = (nil, nil)
            case 49: self.background = nil
            case 38, 48:
                let color: UInt32
                if numbers.popFirst() == 2 {
                    let channels = numbers.prefix(3).map { UInt32($0) }
                    numbers = numbers.dropFirst(3)
                    try #require(channels.count == 3 && channels.allSatisfy { $0 < 256 })
                    color = channels[0] | channels[1] << 8 | channels[2] << 16
                } else {
                    guard let index = numbers.popFirst() else { throw TerminalModelError(description: "SGR 5") }
                    color = UInt32(index)
                    self.hasIndexedColors = true
                }
                if number == 38 { self.foreground = color } else { self.background = color }
            default: throw TerminalModelError(description: "SGR \(number)")
            }
        }
    }

    private mutating func graphics(_ body: ArraySlice<UInt8>) throws {
        let parts = body.split(separator: UInt8(ascii: ";"), maxSplits: 1)
        let keys = Dictionary(
            String(decoding: parts[0], as: UTF8.self).split(separator: ",").map { pair in
                let sides = pair.split(separator: "=", maxSplits: 1).map(String.init)
                return (sides.first ?? "", sides.last ?? "")
            },
            uniquingKeysWith: { first, _ in first }
        )
        // This code only asks whether the terminal knows the protocol.
        if keys["a"] == "q" { return }
        try #require(keys["q"] == "2")
        if keys["a"] == "d" {
            try #require(keys["d"] == "I")
            let id = try #require(keys["i"].flatMap { UInt32($0) })
            try #require(self.kitty.removeValue(forKey: id) != nil, "there is no image \(id)")
            return
        }
        let payload = parts.count > 1 ? Array(parts[1]) : []
        try #require(payload.count <= 4_096)
        if keys["a"] == "T" {
            try #require(self.kittyPayload.isEmpty && keys["C"] == "1")
            self.kittyKeys = keys
        } else {
            try #require(Set(keys.keys) == ["m", "q"])
        }
        self.kittyPayload += payload
        // A chunk that is not the last has a whole number of base64 groups.
        guard keys["m"] == "0" else { return try #require(payload.count % 4 == 0) }
        let id = try #require(self.kittyKeys["i"].flatMap { UInt32($0) })
        self.kitty[id] = Placed(
            row: self.row,
            column: self.column,
            image: try DrawnImage(kitty: self.kittyKeys, payload: self.kittyPayload),
            cells: [self.kittyKeys["c"], self.kittyKeys["r"]]
        )
        self.kittyCount += 1
        self.kittyPayload = []
    }
}

struct TerminalModelError: Error, CustomStringConvertible {
    let description: String
}
