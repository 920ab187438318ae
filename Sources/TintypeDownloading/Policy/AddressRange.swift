// SPDX-License-Identifier: Apache-2.0

/// A range of IP addresses that have their first bits in common, such as `10.0.0.0/8`.
public struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    /// The lowest address in it.
    public let first: IPAddress
    /// The highest address in it.
    public let last: IPAddress

    /// Reads CIDR notation (RFC 4632), or a single address.
    ///
    /// Returns `nil` if the text is neither, or if bits behind the prefix are set: `10.1.0.0/8` is more likely a
    /// mistake than 16 million addresses. A range of IPv4-mapped addresses becomes the range of IPv4 addresses.
    ///
    /// ```swift
    /// let range = AddressRange("10.0.0.0/8")
    /// ```
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first.flatMap({ IPAddress(String($0)) }) else { return nil }
        guard parts.count == 2 else {
            self.init(first: address.unmapped, last: address.unmapped)
            return
        }
        guard parts[1].utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let length = Int(parts[1]), length <= address.family.bitCount
        else { return nil }
        let rest = Self.mask(address.family.bitCount - length)
        guard address.value & rest == 0 else { return nil }
        let last = IPAddress(family: address.family, value: address.value | rest)
        let isMapped = length >= 96
        self.init(first: isMapped ? address.unmapped : address, last: isMapped ? last.unmapped : last)
    }

    /// Creates the range from `first` to `last`, which are of one family and in order.
    init(first: IPAddress, last: IPAddress) {
        self.first = first
        self.last = last
    }

    /// Creates a range of IPv4 addresses.
    init(_ first: UInt8, _ second: UInt8 = 0, _ third: UInt8 = 0, _ fourth: UInt8 = 0, prefixLength: Int) {
        let value = [first, second, third, fourth].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let rest = UInt32(truncatingIfNeeded: Self.mask(32 - prefixLength))
        self.init(first: IPAddress(ipv4: value & ~rest), last: IPAddress(ipv4: value | rest))
    }

    /// Creates a range of IPv6 addresses.
    init(address value: UInt128, prefixLength: Int) {
        let rest = Self.mask(128 - prefixLength)
        self.init(first: IPAddress(ipv6: value & ~rest), last: IPAddress(ipv6: value | rest))
    }

    /// Whether `address` is one of them; an IPv4-mapped address is the IPv4 address that it stands for.
    ///
    /// ```swift
    /// let isInside = AddressRange("10.0.0.0/8")?.contains(IPAddress(ipv4: 0x0A00_0001))  // true
    /// ```
    public func contains(_ address: IPAddress) -> Bool {
        let address = address.unmapped
        return address.family == self.first.family && self.first.value <= address.value
            && address.value <= self.last.value
    }

    /// The number of bits in common, or `nil` for a range that no prefix makes.
    var prefixLength: Int? {
        let difference = self.first.value ^ self.last.value
        let length = self.first.family.bitCount - (128 - difference.leadingZeroBitCount)
        let rest = Self.mask(self.first.family.bitCount - length)
        return self.first.value & rest == 0 && self.last.value & rest == rest ? length : nil
    }

    /// CIDR notation; the first and the last address if the range has no such notation.
    public var description: String {
        self.prefixLength.map { "\(self.first)/\($0)" } ?? "\(self.first) to \(self.last)"
    }

    private static func mask(_ count: Int) -> UInt128 {
        count >= 128 ? .max : (1 << UInt128(count)) - 1
    }
}

extension IPAddress {
    fileprivate init(family: Family, value: UInt128) {
        self = family == .v4 ? IPAddress(ipv4: UInt32(truncatingIfNeeded: value)) : IPAddress(ipv6: value)
    }
}
