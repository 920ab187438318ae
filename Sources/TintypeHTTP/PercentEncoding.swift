// SPDX-License-Identifier: Apache-2.0

/// Percent-encoding, both ways.
package enum PercentEncoding {
    /// `text` with each byte over 0x7F encoded.
    package static func encodeNonASCII(_ text: some Sequence<UInt8>) -> String {
        self.encode(text) { $0 < 0x80 }
    }

    /// Returns `text` with each byte encoded, except for unreserved ones (RFC 3986, 2.3) and the `allowed` ones.
    package static func encode(_ text: some Sequence<UInt8>, allowing allowed: String = "") -> String {
        let allowed = Array(allowed.utf8)
        return self.encode(text) { self.isUnreserved($0) || allowed.contains($0) }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "-._~".utf8.contains(byte)
        }
    }

    private static func encode(_ text: some Sequence<UInt8>, keeping isKept: (UInt8) -> Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        for byte in text {
            if isKept(byte) {
                encoded.append(byte)
            } else {
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// The bytes that `text` stands for; a percent sign without two digits stands for itself.
    package static func decode(_ text: some Collection<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = text.startIndex
        while index != text.endIndex {
            let byte = text[index]
            index = text.index(after: index)
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = text[index...].prefix(2)
            if let high = digits.first, let low = digits.dropFirst().first, let value = self.byte(high, low) {
                bytes.append(value)
                index = digits.endIndex
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    /// The byte that two hexadecimal digits stand for.
    package static func byte(_ high: UInt8, _ low: UInt8) -> UInt8? {
        guard let high = self.value(high), let low = self.value(low) else { return nil }
        return high << 4 | low
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
