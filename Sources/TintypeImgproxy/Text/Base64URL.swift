// SPDX-License-Identifier: Apache-2.0

/// Base64 with the alphabet for URLs (RFC 4648, 5).
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The value of each byte; 64 if it is not in the alphabet.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 64, count: 256)
        for (value, byte) in Self.alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
        return values
    }()

    /// Returns the text for `bytes`, without padding.
    package static func encode(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let alphabet = Self.alphabet
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var pending: UInt32 = 0
        var bitCount = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bitCount += 8
            while bitCount >= 6 {
                bitCount -= 6
                text.append(alphabet[Int(pending >> bitCount & 63)])
            }
        }
        if bitCount > 0 { text.append(alphabet[Int(pending << (6 - bitCount) & 63)]) }
        return text
    }

    /// Returns the bytes that `text` stands for, or `nil` if it is not Base64.
    ///
    /// Padding may be missing.
    static func decode(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        let padding = text.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding <= 2 else { return nil }
        let values = Self.values
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var pending: UInt32 = 0
        var bitCount = 0
        for byte in text.dropLast(padding) {
            let value = values[Int(byte)]
            guard value < 64 else { return nil }
            pending = pending << 6 | UInt32(value)
            bitCount += 6
            if bitCount >= 8 {
                bitCount -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> bitCount))
            }
        }
        // A single character after the last group has too few bits for a byte.
        return bitCount == 6 ? nil : bytes
    }
}
