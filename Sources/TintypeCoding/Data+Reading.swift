// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The order of the bytes within a number.
enum ByteOrder {
    case big
    case little
}

/// Checked reads from untrusted bytes, which return `nil` past the end and never trap.
extension Data {
    /// Returns the byte at `offset` from the start.
    func byte(at offset: Int) -> UInt8? {
        guard offset >= 0, offset < self.count else { return nil }
        return self[self.startIndex + offset]
    }

    /// Returns the unsigned number in the two bytes at `offset`.
    func uint16(at offset: Int, _ order: ByteOrder = .big) -> Int? {
        guard let first = self.byte(at: offset), let second = self.byte(at: offset + 1) else { return nil }
        return order == .big ? Int(first) << 8 | Int(second) : Int(second) << 8 | Int(first)
    }

    /// Returns the unsigned number in the three bytes at `offset`, lowest byte first.
    func uint24LittleEndian(at offset: Int) -> Int? {
        guard let low = self.uint16(at: offset, .little), let high = self.byte(at: offset + 2) else { return nil }
        return Int(high) << 16 | low
    }

    /// Returns the unsigned number in the four bytes at `offset`.
    func uint32(at offset: Int, _ order: ByteOrder = .big) -> Int? {
        guard let first = self.uint16(at: offset, order), let second = self.uint16(at: offset + 2, order) else {
            return nil
        }
        return order == .big ? first << 16 | second : second << 16 | first
    }

    /// Returns whether the ASCII `text` is at `offset`.
    func has(_ text: StaticString, at offset: Int) -> Bool {
        guard offset >= 0, offset + text.utf8CodeUnitCount <= self.count else { return false }
        for index in 0..<text.utf8CodeUnitCount
        where self[self.startIndex + offset + index] != text.utf8Start[index] { return false }
        return true
    }

    /// Returns the bytes from `start` to `end`, cut at the end of the data, without copying them.
    package func slice(from start: Int, to end: Int) -> Data {
        let start = Swift.min(Swift.max(0, start), self.count)
        let end = Swift.min(Swift.max(start, end), self.count)
        return self[self.startIndex + start..<self.startIndex + end]
    }
}
