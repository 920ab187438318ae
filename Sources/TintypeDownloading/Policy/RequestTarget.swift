import CCurl

/// Where libcurl would connect to for a URL, as far as the URL itself tells.
///
/// The URL is read by libcurl's own parser with the flags that a transfer reads it with, and a host is
/// converted by its own converter: two parsers that differ in one corner are how one host is checked
/// and another one is connected to.
struct RequestTarget: Sendable {
    /// The host in one spelling, without brackets and zone.
    let host: String
    /// The address, where the host is one rather than a name.
    let address: IPAddress?
    let port: Int
    let hasUserInformation: Bool

    /// Reads an absolute HTTP URL, or returns `nil` where libcurl or the rules on names refuse it.
    init?(_ text: String) {
        guard let url = curl_url() else { return nil }
        defer { curl_url_cleanup(url) }
        let flags = UInt32(CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME)
        guard curl_url_set(url, CURLUPART_URL, text, flags) == CURLUE_OK,
            let host = Self.part(CURLUPART_HOST, of: url, flags: CInt(CCURL_PUNYCODE)),
            let port = Self.part(CURLUPART_PORT, of: url, flags: CURLU_DEFAULT_PORT).flatMap({ Int($0) })
        else { return nil }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let name = isBracketed ? String(host.dropFirst().dropLast()) : host
        guard let canonical = HostName.canonical(name) else { return nil }
        self.host = canonical
        self.address = IPAddress(canonical)
        self.port = port
        self.hasUserInformation =
            Self.part(CURLUPART_USER, of: url) != nil
            || Self.part(CURLUPART_PASSWORD, of: url) != nil
    }

    private static func part(_ part: CURLUPart, of url: OpaquePointer, flags: CInt = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(url, part, &text, UInt32(flags)) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
