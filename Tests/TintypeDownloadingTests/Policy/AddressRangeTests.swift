// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeDownloading

@Suite struct AddressRangeTests {
    @Test(arguments: [
        ("10.0.0.0/8", "10.0.0.0", "10.255.255.255"), ("10.1.2.3", "10.1.2.3", "10.1.2.3"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"), ("192.168.1.128/25", "192.168.1.128", "192.168.1.255"),
        ("fd00::/8", "fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("::1/128", "::1", "::1"), ("::ffff:10.0.0.0/104", "10.0.0.0", "10.255.255.255"),
    ])
    func `CIDR notation is read`(text: String, first: String, last: String) throws {
        let range = try #require(AddressRange(text))
        #expect(range.first.description == first)
        #expect(range.last.description == last)
        #expect(try #require(AddressRange(range.description)) == range)
    }

    @Test(arguments: [
        "", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.1.0.0/8", "10.0.0/8",
        "::/129",
        "fd00::1/64", "010.0.0.0/8", "a", "[::1]", "fe80::1%lo", "10.0.0.0/ 8", "10.0.0.0/99999999999999999999",
    ])
    func `what is no range is refused`(text: String) {
        #expect(AddressRange(text) == nil)
    }

    @Test func `a range ends where it ends`() throws {
        let range = try #require(AddressRange("172.16.0.0/12"))
        for (text, isIn) in [
            ("172.15.255.255", false), ("172.16.0.0", true), ("172.31.255.255", true), ("172.32.0.0", false),
            ("::ffff:172.16.0.1", true), ("::172.16.0.1", false),
        ] {
            #expect(range.contains(try #require(IPAddress(text))) == isIn, "\(text)")
        }
    }

    /// Checks the first and last address of each range.
    @Test(arguments: AddressSet.notPublic)
    func `each set is denied to its last address`(set: AddressSet) throws {
        let policy = NetworkPolicy.publicInternet
        for range in set.ranges {
            #expect(policy.denial(of: range.first) != nil, "\(range)")
            #expect(policy.denial(of: range.last) != nil, "\(range)")
        }
    }

    /// Addresses next to the denied ranges that RFC 6890 and its registries call globally reachable.
    @Test(arguments: [
        "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0",
        "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
        "203.0.112.255", "203.0.114.0", "223.255.255.255", "2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::",
        "2003::", "2606:4700::1111", "3ffe:ffff::", "3fff:1000::", "64:ff9b::1.1.1.1",
    ])
    func `the neighbours of the sets are allowed`(text: String) throws {
        #expect(NetworkPolicy.publicInternet.denial(of: try #require(IPAddress(text))) == nil)
    }
}
