// SPDX-License-Identifier: Apache-2.0

/// Percent-encoding of the parts of URLs.
enum PercentText {
    /// Returns the bytes that `text` stands for, or `nil` if a percent sign is not followed by two digits.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.contains(UInt8(ascii: "%")) else { return Array(text) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var iterator = text.makeIterator()
        while let byte = iterator.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = iterator.next().flatMap(Hexadecimal.value(of:)),
                let low = iterator.next().flatMap(Hexadecimal.value(of:))
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Returns `text` with all bytes encoded that the path and the query of a URL must not contain.
    ///
    /// Escapes stay as they are. A percent sign without two digits is encoded.
    static func encodeInvalid(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        for index in text.indices {
            let byte = text[index]
            let isValid =
                byte == UInt8(ascii: "%")
                ? index + 2 < text.endIndex && Hexadecimal.value(of: text[index + 1]) != nil
                    && Hexadecimal.value(of: text[index + 2]) != nil
                : self.isValid(byte)
            if isValid {
                result.append(byte)
            } else {
                result.append(UInt8(ascii: "%"))
                result.append(Self.digits[Int(byte >> 4)])
                result.append(Self.digits[Int(byte & 15)])
            }
        }
        return result
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func isValid(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
            UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: 0x21...0x7E ~= byte
        }
    }
}
