// SPDX-License-Identifier: Apache-2.0

/// A set of ASCII bytes, for grammars that are checked byte by byte.
struct ByteSet: Sendable {
    private static let alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    /// The bytes of tokens, such as methods and names of fields (RFC 9110, 5.6.2).
    static let token = ByteSet(alphanumeric + "!#$%&'*+-.^_`|~")
    /// The unreserved bytes of URLs, which mean the same with and without an escape (RFC 3986, 2.3).
    static let unreserved = ByteSet(alphanumeric + "-._~")
    /// The bytes of host names: unreserved characters, sub-delimiters and percent signs (RFC 3986, 3.2.2).
    static let hostName = ByteSet(alphanumeric + "-._~!$&'()*+,;=%")
    /// The bytes between the brackets of an IPv6 address.
    static let address = ByteSet("0123456789ABCDEFabcdef:.")
    static let digit = ByteSet("0123456789")
    /// The digits of W3C trace contexts, which have no capital letters.
    static let lowercaseHexadecimal = ByteSet("0123456789abcdef")

    private let low: UInt64
    private let high: UInt64

    /// Creates the set of the ASCII characters of `text`.
    init(_ text: String) {
        var (low, high): (UInt64, UInt64) = (0, 0)
        for byte in text.utf8 where byte < 128 {
            if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
        }
        self.low = low
        self.high = high
    }

    private init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    func union(_ other: ByteSet) -> ByteSet {
        ByteSet(low: self.low | other.low, high: self.high | other.high)
    }

    func contains(_ byte: UInt8) -> Bool {
        let word = byte < 64 ? self.low : byte < 128 ? self.high : 0
        return (word &>> UInt64(byte & 63)) & 1 == 1
    }
}

/// ASCII text whose case does not count.
enum ASCIIText {
    /// Returns whether `bytes` is `text` in any case.
    static func areSame(_ bytes: some Collection<UInt8>, _ text: String) -> Bool {
        guard bytes.count == text.utf8.count else { return false }
        // Much faster than `zip`.
        var others = text.utf8.makeIterator()
        for byte in bytes {
            guard let other = others.next(), self.lowercased(byte) == self.lowercased(other) else { return false }
        }
        return true
    }

    /// Returns `bytes` without the spaces and tabs at both ends.
    static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes
    where Bytes.SubSequence == Bytes {
        var bytes = bytes
        while let first = bytes.first, self.isSpace(first) { bytes.removeFirst() }
        while let last = bytes.last, self.isSpace(last) { bytes.removeLast() }
        return bytes
    }

    /// Returns whether the byte is a space or a tab, the white space within lines (RFC 9110, 5.6.3).
    static func isSpace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }

    static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
}
