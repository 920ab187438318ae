// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl

/// The destination of a URL by libcurl.
///
/// libcurl's own parser reads the URL, with the flags of a transfer, and its own converter converts the host. With two
/// parsers that differ in one corner, the policy could check one host while libcurl connects to another.
package struct ConnectionTarget: Sendable {
    /// The host in one spelling, without brackets and zone.
    package let host: String
    /// The address, if the host is an address and not a name.
    let address: IPAddress?
    package let port: Int
    package let hasUserInformation: Bool

    /// Reads an absolute HTTP URL, or returns `nil` if libcurl or the rules for names refuse it.
    package init?(_ text: String) {
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

    /// Returns one part of a URL, or `nil` if the URL has no such part.
    static func part(_ part: CURLUPart, of url: OpaquePointer, flags: CInt = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(url, part, &text, UInt32(flags)) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
