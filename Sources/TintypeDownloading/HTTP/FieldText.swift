/// The one check of every text that becomes a line of a request's head, or a part of one (RFC 9110, 5.5).
///
/// A line break would end the line and begin another, and a NUL ends the text for libcurl.
package enum FieldText {
    /// Whether `text` can be the value of a field, or a part of it: visible characters, spaces, tabs, and bytes
    /// over 0x7F, which HTTP calls obsolete and lets pass.
    package static func isValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }

    /// Whether `value`, which a server has sent, can be sent back and means the same to it.
    ///
    /// Bytes that are no text were replaced when they were read.
    package static func canBeReturned(_ value: String) -> Bool {
        !value.isEmpty && self.isValue(value) && !value.unicodeScalars.contains("\u{FFFD}")
    }

    /// Whether `text` has no control character at all, as names and passwords have none (RFC 7617, 2).
    static func isPlain(_ text: String) -> Bool {
        self.isPlain(text.utf8)
    }

    /// The same for bytes.
    static func isPlain(_ text: some Sequence<UInt8>) -> Bool {
        text.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Whether `text` is a token, as names of fields are (RFC 9110, 5.6.2).
    static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(Self.isTokenByte)
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
