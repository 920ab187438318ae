// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeDownloading

@Suite struct ResourceAddressTests {
    @Test(arguments: [
        ("http://Example.org/a", "http://example.org:80", "example.org"),
        ("HTTPS://example.org:443?x", "https://example.org:443", "example.org:443"),
        ("https://user:pass@word@example.org#f", "https://example.org:443", "example.org"),
        ("http://other.org\\@example.org/", "http://example.org:80", "example.org"),
        ("http://[::1]/a:b", "http://[::1]:80", "[::1]"),
        ("http://[::1]:8080/a", "http://[::1]:8080", "[::1]:8080"),
    ])
    func `the origin has one spelling`(text: String, origin: String, host: String) throws {
        let address = try ResourceAddress(text)
        #expect(address.origin == origin)
        #expect(address.host == host)
        #expect(!address.display.contains("pass"))
    }
}
