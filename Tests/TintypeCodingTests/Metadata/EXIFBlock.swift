// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A builder of valid and broken EXIF blocks, byte by byte.
struct EXIFBlock {
    /// A field whose values are bytes in the block's byte order.
    struct Field {
        let tag: Int
        let type: Int
        let count: Int
        let value: [UInt8]
    }

    var isLittleEndian = false
    var main: [Field] = []
    var details: [Field] = []
    var position: [Field] = []
    /// The thumbnail of a second directory, which is the last part of the block.
    var thumbnail: [UInt8] = []

    func number(_ value: Int, _ count: Int) -> [UInt8] {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
        return self.isLittleEndian ? bytes : bytes.reversed()
    }

    func text(_ tag: Int, _ text: String) -> Field {
        let value = Array(text.utf8) + [0]
        return Field(tag: tag, type: 2, count: value.count, value: value)
    }

    func short(_ tag: Int, _ value: Int) -> Field {
        Field(tag: tag, type: 3, count: 1, value: self.number(value, 2))
    }

    func long(_ tag: Int, _ value: Int) -> Field {
        Field(tag: tag, type: 4, count: 1, value: self.number(value, 4))
    }

    func rationals(_ tag: Int, _ values: [(Int, Int)], isSigned: Bool = false) -> Field {
        let bytes = values.flatMap { self.number($0.0, 4) + self.number($0.1, 4) }
        return Field(tag: tag, type: isSigned ? 10 : 5, count: values.count, value: bytes)
    }

    var bytes: [UInt8] {
        var main = self.main
        var bytes = Array((self.isLittleEndian ? "II" : "MM").utf8) + self.number(42, 2) + self.number(8, 4)
        // The sizes of the directories do not depend on the offsets in them.
        let sizes = [main, self.details, self.position].map { self.byteCount($0) }
        let pointers = (self.details.isEmpty ? 0 : 12) + (self.position.isEmpty ? 0 : 12)
        var next = 8 + sizes[0] + pointers
        if !self.details.isEmpty {
            main.append(self.long(0x8769, next))
            next += sizes[1]
        }
        if !self.position.isEmpty {
            main.append(self.long(0x8825, next))
            next += sizes[2]
        }
        bytes += self.directory(main, at: bytes.count, next: self.thumbnail.isEmpty ? 0 : next)
        for fields in [self.details, self.position] where !fields.isEmpty {
            bytes += self.directory(fields, at: bytes.count, next: 0)
        }
        guard !self.thumbnail.isEmpty else { return bytes }
        let place = bytes.count + 2 + 2 * 12 + 4
        bytes += self.directory(
            [self.long(0x0201, place), self.long(0x0202, self.thumbnail.count)],
            at: bytes.count,
            next: 0
        )
        return bytes + self.thumbnail
    }

    var data: Data { Data(self.bytes) }

    private func byteCount(_ fields: [Field]) -> Int {
        fields.reduce(6) { $0 + 12 + ($1.value.count > 4 ? $1.value.count : 0) }
    }

    private func directory(_ fields: [Field], at start: Int, next: Int) -> [UInt8] {
        var bytes = self.number(fields.count, 2)
        var values: [UInt8] = []
        let place = start + 2 + fields.count * 12 + 4
        for field in fields {
            bytes += self.number(field.tag, 2) + self.number(field.type, 2) + self.number(field.count, 4)
            if field.value.count <= 4 {
                bytes += field.value + [UInt8](repeating: 0, count: 4 - field.value.count)
            } else {
                bytes += self.number(place + values.count, 4)
                values += field.value
            }
        }
        return bytes + self.number(next, 4) + values
    }

    /// Returns a block like that of a camera with satellite navigation.
    static func camera(isLittleEndian: Bool = false) -> EXIFBlock {
        var block = EXIFBlock(isLittleEndian: isLittleEndian)
        block.main = [
            block.text(0x010F, "Maker  "), block.text(0x0110, "Maker One"), block.short(0x0112, 6),
            block.rationals(0x011A, [(300, 1)]), block.rationals(0x011B, [(1_500, 10)]), block.short(0x0128, 3),
        ]
        block.details = [
            block.text(0x9003, "2024:02:29 23:59:58"), block.text(0x9011, "-03:30"), block.text(0x9291, "25"),
            block.undefined(0x927C, Array("maker's notes".utf8)), block.long(0xA002, 4_000),
            block.text(0xA434, "A lens"),
        ]
        block.position = [
            block.text(1, "S"), block.rationals(2, [(33, 1), (51, 1), (2_535, 100)]), block.text(3, "E"),
            block.rationals(4, [(151, 1), (12, 1), (0, 0)]), Field(tag: 5, type: 1, count: 1, value: [1]),
            block.rationals(6, [(125, 10)]),
        ]
        block.thumbnail = Array("a thumbnail".utf8)
        return block
    }

    private func undefined(_ tag: Int, _ value: [UInt8]) -> Field {
        Field(tag: tag, type: 7, count: value.count, value: value)
    }
}
