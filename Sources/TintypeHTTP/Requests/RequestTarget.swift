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

/// The text of a `Host` field or of the authority of a URL.
enum HostText {
    /// Returns whether `bytes` is a host name or an address, with or without a port (RFC 9110, 7.2).
    ///
    /// User information, raw bytes over 0x7F and empty labels make a host invalid.
    static func isValid(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
        let isAddress = bytes.first == UInt8(ascii: "[")
        let hosts = isAddress ? ByteSet.address : .hostName
        let host = bytes.dropFirst(isAddress ? 1 : 0).prefix(while: hosts.contains)
        var rest = bytes[host.endIndex...]
        guard !host.isEmpty, !isAddress || rest.popFirst() == UInt8(ascii: "]") else { return false }
        var last: UInt8 = 0
        for byte in host {
            if !isAddress, byte == UInt8(ascii: "."), last == byte { return false }
            last = byte
        }
        guard let colon = rest.popFirst() else { return true }
        return colon == UInt8(ascii: ":") && rest.count <= 5 && rest.allSatisfy(ByteSet.digit.contains)
    }
}
