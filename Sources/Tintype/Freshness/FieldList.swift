/// Values of header fields that are lists (RFC 9110, 5.6.1).
enum FieldList {
    /// The elements of a list that may be spread over several fields; empty ones are left out.
    ///
    /// A comma inside a quoted string separates nothing. A quote without its end is an ordinary
    /// character, so that it can't hide the elements that follow.
    static func elements(of values: [String]) -> [String] {
        values.flatMap { self.elements(of: Array($0.utf8)) }
    }

    private static func elements(of bytes: [UInt8]) -> [String] {
        var elements: [String] = []
        var start = 0
        var index = 0
        func add(_ end: Int) {
            let element = self.trimmed(bytes[start..<end])
            if !element.isEmpty { elements.append(String(decoding: element, as: UTF8.self)) }
        }
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = self.end(ofQuoteAt: index, in: bytes) ?? index + 1
            case UInt8(ascii: ","):
                add(index)
                index += 1
                start = index
            default: index += 1
            }
        }
        add(bytes.count)
        return elements
    }

    /// The index behind the quoted string that starts at `start`, or `nil` when it does not end.
    static func end(ofQuoteAt start: Int, in bytes: [UInt8]) -> Int? {
        var index = start + 1
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): return index + 1
            case UInt8(ascii: "\\"): index += 2
            default: index += 1
            }
        }
        return nil
    }

    /// `bytes` without spaces and tabs at both ends.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let bytes = bytes.drop(while: isSpace)
        return bytes.dropLast(bytes.reversed().prefix(while: isSpace).count)
    }
}
