// SPDX-License-Identifier: Apache-2.0

/// The one check of every text that becomes a line of a request's head, or a part of one (RFC 9110, 5.5), and of
/// what is read from one.
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
    package static func isPlain(_ text: String) -> Bool {
        self.isPlain(text.utf8)
    }

    /// The same for bytes.
    package static func isPlain(_ text: some Sequence<UInt8>) -> Bool {
        text.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    /// Whether `text` is a token, as names of fields are (RFC 9110, 5.6.2).
    package static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(ByteSet.token.contains)
    }

    /// Returns whether a request field of this name determines the end of its message or the fate of its connection
    /// (RFC 9110, 7.6.1; RFC 9112, 6).
    package static func isAboutConnection(_ name: String) -> Bool {
        self.connectionNames.contains(name.lowercased())
    }

    private static let connectionNames: Set<String> = [
        "connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    /// Whether `text` is a number as fields have them: digits only, where Swift's own parsers take a sign as well.
    static func isNumber(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    }
}
