// SPDX-License-Identifier: Apache-2.0

/// A URL that tries to lead a guarded downloader to a forbidden target.
public struct URLTrick: Sendable, CustomStringConvertible {
    /// The URL exactly as an attacker would write it.
    public let text: String
    /// The stable name of the error that must refuse the URL.
    public let code: String

    init(_ text: String, _ code: String) {
        self.text = text
        self.code = code
    }

    public var description: String { self.text }

    public static let all = Self.literals + Self.embeddings + Self.encodings + Self.names + Self.disguises

    /// Addresses in their usual notation.
    private static let literals = [
        "127.0.0.1", "127.0.0.1:80", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255",
        "172.16.0.1",
        "172.31.255.255", "192.168.1.1", "169.254.169.254", "169.254.170.2", "169.254.0.1", "100.64.0.1",
        "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.51.100.7", "203.0.113.9", "198.18.0.1",
        "192.88.99.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "[::1]", "[0000::1]:80", "[::]",
        "[fe80::1]", "[fe80::1%25lo]", "[fe80::a9fe:a9fe]", "[fd00::1]", "[fc00::1]", "[fec0::1]", "[fd00:ec2::254]",
        "[fd20:ce::254]", "[ff02::1]", "[100::1]", "[2001:db8::1]", "[3fff::1]", "[2001:2::1]", "[2001:10::1]",
        "[4000::1]", "[5f00::1]", "[0:0:0:0:0:0:0:1]",
    ].map { URLTrick("http://\($0)/", "addressNotAllowed") }

    /// IPv4 addresses within IPv6 addresses: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
    private static let embeddings = [
        "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::ffff:10.0.0.1",
        "::ffff:0.0.0.0", "::ffff:192.0.2.1", "::127.0.0.1", "::a9fe:a9fe", "::10.0.0.1", "::ffff:0:127.0.0.1",
        "::ffff:0:a9fe:a9fe", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1", "64:ff9b:1::127.0.0.1",
        "64:ff9b:1:7f00:0:100::", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c0a8:101::1", "2002:a00:1::",
        "2001:0:7f00:1::", "2001:0:808:808:0:0:80ff:fffe", "2001:0:808:808::5601:5601",
        "2606:2800:220:1:0:5efe:10.0.0.1", "2606:2800:220:1:200:5efe:127.0.0.1", "fe80::5efe:192.168.1.1",
    ].map { URLTrick("http://[\($0)]/", "addressNotAllowed") }

    /// Addresses in unusual notations.
    private static let encodings =
        [
            "2130706433", "017700000001", "0x7f000001", "0x7F.0x0.0x0.0x1", "0177.0.0.1", "0177.0x0.0.01", "127.1",
            "127.0.1",
            "0x7f.1", "00000177.1", "0", "0x0", "3232235777", "0xc0a80101", "2852039166", "0xA9FEA9FE",
            "0251.0376.0251.0376", "0251.00376.000251.0000376", "169.254.43518", "%31%32%37.0.0.1",
            "%31%36%39%2e%32%35%34%2e169.254", "0x7f%2e1", "127.0.0.1.", "0x7f000001.", "169.254.169.254.",
        ].map { URLTrick("http://\($0)/", "addressNotAllowed") }
        + [
            "7147006462", "0o177.0.0.1", "256.256.256.256", "1.2.3.4.5", "127.0.0.0x", "0x100000000", "127.0.0.1..",
            "１２７.0.0.1", "①②⑦.0.0.1", "127。0。0。1", "127%E3%80%820.0.1", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "ｌｏｃａｌｈｏｓｔ", "localhoſt",
            "127.0.0.1%00.example.org", "localhost%00", "a b", "a..example.org",
            ".example.org",
            "[::1", "[127.0.0.1]", "[::1]x", "[]", "[::ffff:127.0.0.0.1]", "127.0.0.1%09", "example.org\\127.0.0.1",
            "example.org:80:80", "example.org:99999", "\u{AD}localhost", "a@b@127.0.0.1",
        ].map { URLTrick("http://\($0)/", "malformedHost") }

    /// Names that only a local network knows.
    private static let names = [
        "localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain", "printer.local",
        "ip6-localhost",
        "ip6-loopback", "metadata", "metadata.google.internal", "METADATA.google.internal.", "instance-data",
        "instance-data.ec2.internal", "router.home.arpa", "nas.lan", "kubernetes.default.svc.cluster.local",
        "%6cocalhost", "loc%61lhost", "localhost%2e", "metadata%2egoogle.internal",
    ].map { URLTrick("http://\($0)/", "hostNotAllowed") }

    /// URLs that look like something else.
    private static let disguises = [
        URLTrick("http://example.org@127.0.0.1/", "userInformationInURL"),
        URLTrick("http://example.org:80@169.254.169.254/", "userInformationInURL"),
        URLTrick("http://user:password@example.org/", "userInformationInURL"),
        URLTrick("http://@127.0.0.1/", "userInformationInURL"),
        URLTrick("http://:@127.0.0.1/", "userInformationInURL"),
        URLTrick("http://example.org\\@127.0.0.1/", "userInformationInURL"),
        URLTrick("http://127.1.1.1:80\\@127.2.2.2:80/", "userInformationInURL"),
        URLTrick("http://example.org%2523@127.0.0.1/", "userInformationInURL"),
        URLTrick("http://example.org%2f@127.0.0.1/", "userInformationInURL"),
        URLTrick("http://127.0.0.1#@example.org/", "addressNotAllowed"),
        URLTrick("http://127.0.0.1?@example.org/", "addressNotAllowed"),
        URLTrick("http://127.1.1.1:80#\\@127.2.2.2:80/", "addressNotAllowed"),
        URLTrick("HTTP://127.0.0.1/", "addressNotAllowed"),
        URLTrick("http://example.org:22/", "portNotAllowed"),
        URLTrick("http://example.org:0/", "portNotAllowed"),
        URLTrick("http://127.0.0.1:6379/", "portNotAllowed"),
        URLTrick("https://example.org:8443/", "portNotAllowed"),
        URLTrick("http:127.0.0.1/", "invalidURL"),
        URLTrick("http:///127.0.0.1/", "invalidURL"),
        URLTrick("http:/127.0.0.1/", "invalidURL"),
        URLTrick("//127.0.0.1/", "invalidURL"),
        URLTrick("file:///etc/passwd", "schemeNotAllowed"),
        URLTrick("file://\\/\\/etc/passwd", "schemeNotAllowed"),
        URLTrick("FILE:/etc/passwd", "schemeNotAllowed"),
        URLTrick("data:image/gif;base64,R0lGODlhAQABAAAAACw=", "schemeNotAllowed"),
        URLTrick("gopher://127.0.0.1:6379/_", "unsupportedScheme"),
        URLTrick("dict://127.0.0.1:11111/", "unsupportedScheme"),
        URLTrick("ftp://127.0.0.1/", "unsupportedScheme"),
        URLTrick("jar:http://127.0.0.1!/", "unsupportedScheme"),
        URLTrick("url:http://127.0.0.1/", "unsupportedScheme"),
        URLTrick(" http://127.0.0.1/", "unsupportedScheme"),
        URLTrick("0://example.org:80;http://127.0.0.1:80/", "unsupportedScheme"),
    ]
}
