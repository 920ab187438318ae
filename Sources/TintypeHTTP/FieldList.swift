// SPDX-License-Identifier: Apache-2.0

/// Values of header fields that are lists (RFC 9110, 5.6.1).
///
/// Origins write them, and up to hundreds of kilobytes of them: all here is linear in the bytes, whatever they are.
package enum FieldList {
    /// The elements of a list that may be spread over several fields; empty ones are left out.
    ///
    /// A comma inside a quoted string separates nothing. A quote without its end is an ordinary
    /// character, so that it cannot hide the elements that follow.
    package static func elements(of values: [String]) -> [String] {
        values.flatMap { value in
            var value = value
            return value.withUTF8 { bytes in
                self.ranges(in: bytes).map { String(decoding: bytes[$0], as: UTF8.self) }
            }
        }
    }

    /// Returns the ranges of the elements of one field.
    static func ranges<Bytes: RandomAccessCollection<UInt8>>(in bytes: Bytes) -> [Range<Int>] where Bytes.Index == Int {
        var ranges: [Range<Int>] = []
        var start = bytes.startIndex
        var index = bytes.startIndex
        // A quote without an end makes all later quotes escaped ones, so no quote can end after it.
        var mayQuote = true
        func add(_ end: Int) {
            let range = self.trimmed(start..<end, of: bytes)
            if !range.isEmpty { ranges.append(range) }
        }
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: "\"") where mayQuote:
                let end = self.end(ofQuoteAt: index, in: bytes)
                mayQuote = end != nil
                index = end ?? index + 1
            case UInt8(ascii: ","):
                add(index)
                index += 1
                start = index
            default: index += 1
            }
        }
        add(bytes.endIndex)
        return ranges
    }

    /// The index behind the quoted string that starts at `start`, or `nil` when it does not end.
    static func end<Bytes: RandomAccessCollection<UInt8>>(ofQuoteAt start: Int, in bytes: Bytes) -> Int?
    where Bytes.Index == Int {
        var index = start + 1
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: "\""): return index + 1
            case UInt8(ascii: "\\"): index += 2
            default: index += 1
            }
        }
        return nil
    }

    /// `range` without spaces and tabs at both ends.
    private static func trimmed<Bytes: RandomAccessCollection<UInt8>>(
        _ range: Range<Int>,
        of bytes: Bytes
    ) -> Range<Int>
    where Bytes.Index == Int {
        func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isSpace(bytes[start]) { start += 1 }
        while start < end, isSpace(bytes[end - 1]) { end -= 1 }
        return start..<end
    }
}
