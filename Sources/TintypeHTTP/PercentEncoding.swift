// SPDX-License-Identifier: Apache-2.0

/// Percent-encoding, both ways.
package enum PercentEncoding {
    /// `text` with each byte over 0x7F encoded.
    package static func encodeNonASCII(_ text: some Sequence<UInt8>) -> String {
        self.encode(Array(text)) { $0 < 0x80 }
    }

    /// Returns `text` with each byte encoded, except for unreserved ones (RFC 3986, 2.3) and the `allowed` ones.
    package static func encode(_ text: some Sequence<UInt8>, allowing allowed: String = "") -> String {
        let kept = ByteSet.unreserved.union(ByteSet(allowed))
        return self.encode(Array(text), keeping: kept.contains)
    }

    private static func encode(_ text: [UInt8], keeping isKept: (UInt8) -> Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        encoded.reserveCapacity(text.count)
        for byte in text {
            if isKept(byte) {
                encoded.append(byte)
            } else {
                encoded.append(UInt8(ascii: "%"))
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// The bytes that `text` stands for; a percent sign without two digits stands for itself.
    package static func decode(_ text: some Sequence<UInt8>) -> [UInt8] {
        // Copy first: other modules call this function unspecialized, and a generic loop over bytes is slow.
        let text = Array(text)
        guard var index = text.firstIndex(of: UInt8(ascii: "%")) else { return text }
        var bytes = Array(text[..<index])
        bytes.reserveCapacity(text.count)
        while index < text.count {
            if text[index] == UInt8(ascii: "%"), index + 2 < text.count,
                let value = self.byte(text[index + 1], text[index + 2])
            {
                bytes.append(value)
                index += 3
            } else {
                bytes.append(text[index])
                index += 1
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
