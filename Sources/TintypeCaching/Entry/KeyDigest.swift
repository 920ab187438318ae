import CCrypto

/// The SHA-256 of a key's text: its first bits are what a file is called.
struct KeyDigest: Sendable, Hashable {
    /// The hexadecimal digits of a digest.
    private static let digitCount = 64

    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    /// Hashes the text of `key`.
    init(_ key: CacheKey) {
        self.init(text: key.text)
    }

    init(text: String) {
        var text = text
        text.withUTF8 { input in
            withUnsafeMutableBytes(of: &self.words) { output in
                _ = SHA256(input.baseAddress, input.count, output.bindMemory(to: UInt8.self).baseAddress)
            }
        }
    }

    /// The digest as 64 lower-case hexadecimal digits.
    var fileName: String {
        String(unsafeUninitializedCapacity: Self.digitCount) { output in
            withUnsafeBytes(of: self.words) { bytes in
                for (position, byte) in bytes.enumerated() {
                    output[2 * position] = Self.digit(of: byte >> 4)
                    output[2 * position + 1] = Self.digit(of: byte & 15)
                }
            }
            return Self.digitCount
        }
    }

    /// The first 64 bits.
    var high: UInt64 { UInt64(bigEndian: self.words.0) }
    /// The second 64 bits.
    var low: UInt64 { UInt64(bigEndian: self.words.1) }

    static func == (left: KeyDigest, right: KeyDigest) -> Bool {
        left.words == right.words
    }

    func hash(into hasher: inout Hasher) {
        // Any part of a SHA-256 is as good as the whole for a table.
        hasher.combine(self.words.0)
    }

    static func digit(of value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
