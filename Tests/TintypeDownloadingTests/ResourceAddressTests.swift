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

    @Test(arguments: [
        (HeaderLineCase(line: "HTTP/2 204 \r\n"), "status 204"),
        (HeaderLineCase(line: "HTTP/1.1 200 OK\r\n"), "status 200"),
        (HeaderLineCase(line: "A: b \r\n"), "A=b"), (HeaderLineCase(line: "A:\r\n"), "A="),
        (HeaderLineCase(line: "\t more\r\n"), "+more"), (HeaderLineCase(line: "\r\n"), "end"),
        (HeaderLineCase(line: "  \r\n"), "malformed"), (HeaderLineCase(line: "nonsense\r\n"), "malformed"),
        (HeaderLineCase(line: ""), "malformed"),
    ])
    func `lines of a head are told apart`(line: HeaderLineCase, expected: String) {
        #expect(line.parsed == expected)
    }
}

struct HeaderLineCase: Sendable {
    let line: String

    var parsed: String {
        Array(self.line.utf8).withUnsafeBytes { bytes in
            switch HeaderLine(bytes) {
            case .status(let status): "status \(status)"
            case .field(let name, let value): "\(name)=\(value)"
            case .continuation(let value): "+\(value)"
            case .end: "end"
            case .malformed: "malformed"
            }
        }
    }
}
