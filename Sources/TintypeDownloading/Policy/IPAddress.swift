// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import Glibc

/// An IPv4 or IPv6 address, without port and zone.
public struct IPAddress: Sendable, Hashable, Comparable, CustomStringConvertible {
    enum Family: Int, Sendable {
        case v4 = 32
        case v6 = 128

        /// The number of bits in an address.
        var bitCount: Int { self.rawValue }
    }

    let family: Family
    /// The address as a number; IPv4 uses the low 32 bits.
    let value: UInt128

    /// Creates an IPv4 address from its 32 bits, the first part of the dotted form in the highest ones.
    ///
    /// ```swift
    /// let address = IPAddress(ipv4: 0x7F00_0001)  // 127.0.0.1
    /// ```
    public init(ipv4 value: UInt32) {
        self.family = .v4
        self.value = UInt128(value)
    }

    /// Creates an IPv6 address from its 128 bits.
    ///
    /// ```swift
    /// let address = IPAddress(ipv6: 1)  // ::1
    /// ```
    public init(ipv6 value: UInt128) {
        self.family = .v6
        self.value = value
    }

    /// Reads four decimal numbers with dots, or an IPv6 address in any form of RFC 4291.
    ///
    /// Octal, hexadecimal and short forms, brackets and zones are not read: `nil`.
    ///
    /// ```swift
    /// let address = IPAddress("2001:db8::1")
    /// ```
    public init?(_ text: String) {
        var ipv4 = in_addr()
        if inet_pton(AF_INET, text, &ipv4) == 1 {
            self.init(ipv4: UInt32(bigEndian: ipv4.s_addr))
            return
        }
        var ipv6 = in6_addr()
        guard inet_pton(AF_INET6, text, &ipv6) == 1 else { return nil }
        self.init(ipv6)
    }

    /// Reads the address of a socket address; returns `nil` for another family.
    init?(_ address: UnsafePointer<sockaddr>, length: Int) {
        let bytes = UnsafeRawPointer(address)
        switch CInt(address.pointee.sa_family) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            let ipv4 = bytes.loadUnaligned(as: sockaddr_in.self).sin_addr
            self.init(ipv4: UInt32(bigEndian: ipv4.s_addr))
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            self.init(bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr)
        default:
            return nil
        }
    }

    private init(_ ipv6: in6_addr) {
        let value = withUnsafeBytes(of: ipv6) { $0.loadUnaligned(as: UInt128.self) }
        self.init(ipv6: UInt128(bigEndian: value))
    }

    /// The usual text: dotted decimal, or that of RFC 5952.
    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        switch self.family {
        case .v4:
            var ipv4 = in_addr(s_addr: UInt32(truncatingIfNeeded: self.value).bigEndian)
            inet_ntop(AF_INET, &ipv4, &text, socklen_t(text.count))
        case .v6:
            var ipv6 = self.value.bigEndian
            inet_ntop(AF_INET6, &ipv6, &text, socklen_t(text.count))
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    public static func < (left: IPAddress, right: IPAddress) -> Bool {
        (left.family.rawValue, left.value) < (right.family.rawValue, right.value)
    }
}
