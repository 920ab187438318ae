// SPDX-License-Identifier: Apache-2.0

/// A request target that was reduced to its path and query (RFC 9112, 3.2).
struct RequestTarget {
    /// The path and the query, or `*`.
    let text: String
    /// The place of the authority, if the client sent a URL.
    let authority: Range<Int>?

    /// Reads a target, which has neither white space nor control characters.
    init(_ bytes: Slice<UnsafeRawBufferPointer>, method: RequestMethod) throws(RequestRefusal) {
        if bytes.first == UInt8(ascii: "/") {
            self.text = Self.text(bytes)
            self.authority = nil
        } else if bytes.count == 1, bytes.first == UInt8(ascii: "*"), method == .options {
            self.text = "*"
            self.authority = nil
        } else {
            guard let scheme = ["http://", "https://"].first(where: { Self.hasPrefix($0, bytes) }) else {
                throw .invalidTarget
            }
            let rest = bytes.dropFirst(scheme.utf8.count)
            let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            guard HostText.isValid(authority) else { throw .invalidHost }
            let path = rest[authority.endIndex...]
            self.text = (path.first == UInt8(ascii: "/") ? "" : "/") + Self.text(path)
            self.authority = authority.startIndex..<authority.endIndex
        }
    }

    private static func hasPrefix(_ prefix: String, _ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        ASCIIText.areSame(bytes.prefix(prefix.utf8.count), prefix)
    }

    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        bytes.allSatisfy { $0 < 0x80 }
            ? String(decoding: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self)
            : PercentEncoding.encodeNonASCII(bytes)
    }
}
