// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Brings the names of hosts into one spelling.
enum HostName {
    /// Returns the address that a host stands for without a look-up, or `nil` if it is a name.
    ///
    /// `host` is without brackets. Every notation of the system's look-up counts: `0x7f.1` is 127.0.0.1.
    static func address(_ host: String) -> IPAddress? {
        if let address = IPAddress(host) { return address }
        var address = in_addr()
        guard Self.endsInNumber(host), inet_aton(host, &address) == 1 else { return nil }
        return IPAddress(ipv4: UInt32(bigEndian: address.s_addr))
    }

    /// The one spelling of a name or an address, or `nil` if `host` is neither (RFC 1123, 2.1).
    ///
    /// A name whose last label is a number would be an address for some readers and a name for others.
    static func canonical(_ host: String) -> String? {
        // A dot at the end only says that the name is whole.
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        // The length comes first, because the host may be as long as a URL.
        guard name.utf8.count <= 253 else { return nil }
        if let address = Self.address(name) { return address.unmapped.description }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard !Self.endsInNumber(name), labels.allSatisfy(Self.isLabel) else { return nil }
        return name.lowercased()
    }

    private static func isLabel(_ label: Substring) -> Bool {
        1...63 ~= label.utf8.count && label.utf8.allSatisfy(Self.isLetter)
    }

    /// Underscores are against the rules and in use.
    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Whether the last label is decimal, or hexadecimal after `0x` (URL Standard, "ends in a number").
    private static func endsInNumber(_ name: String) -> Bool {
        let label = name.lowercased().utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).last
        guard let label, let first = label.first else { return false }
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        if label.allSatisfy({ digits ~= $0 }) { return true }
        return first == UInt8(ascii: "0") && label.dropFirst().first == UInt8(ascii: "x")
            && label.dropFirst(2).allSatisfy { digits ~= $0 || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0 }
    }
}
