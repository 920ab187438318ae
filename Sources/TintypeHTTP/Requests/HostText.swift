// SPDX-License-Identifier: Apache-2.0

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
