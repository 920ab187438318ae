// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import TintypeHTTP

/// The target of a redirect, and the parts of a request that may go there.
enum Redirect {
    /// Finds out whether a response is a redirect, and checks its target.
    ///
    /// - Parameters:
    ///   - response: A response that the request does not accept as it is.
    ///   - count: The number of redirects so far.
    ///   - limit: The most redirects that are followed.
    ///   - policy: The policy that the target must keep.
    /// - Returns: The address to go on with, or `nil` if the response is no redirect.
    /// - Throws: ``DownloadError`` if the redirect must not be followed.
    static func target(
        of response: ResponseState,
        count: Int,
        limit: Int,
        policy: NetworkPolicy
    ) throws(DownloadError) -> ResourceAddress? {
        guard response.hasHead, let status = response.status, [301, 302, 303, 307, 308].contains(status),
            let location = response.headers["Location"], !location.isEmpty
        else { return nil }
        let address = response.address
        guard count < limit else { throw .tooManyRedirects(limit: limit, at: address) }
        guard let text = self.resolve(location, from: address) else {
            throw .invalidResponse("its Location is not a URL", at: address)
        }
        guard let target = try? ResourceAddress(text), target.scheme == .http || target.scheme == .https else {
            throw .unsafeRedirect(to: text, at: address)
        }
        try policy.check(target)
        return target
    }

    /// The absolute URL that `location` means in a response from `address`, without its fragment, or `nil` if it is no URL.
    ///
    /// Credentials in the URL stay on the same origin and are never taken to another.
    static func resolve(_ location: String, from address: ResourceAddress) -> String? {
        // libcurl would read it up to there.
        guard !location.utf8.contains(0) else { return nil }
        // A fragment alone means the same address (RFC 3986, 5.2.2); libcurl would replace the path by a slash.
        if location.utf8.first == UInt8(ascii: "#") { return address.text }
        // libcurl takes a scheme without slashes for the name of a file.
        if self.hasForeignScheme(location) { return location }
        guard let base = curl_url() else { return nil }
        defer { curl_url_cleanup(base) }
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE)
        guard curl_url_set(base, CURLUPART_URL, address.text, 0) == CURLUE_OK else { return nil }
        let user = self.part(CURLUPART_USER, of: base)
        let password = self.part(CURLUPART_PASSWORD, of: base)
        guard curl_url_set(base, CURLUPART_URL, location, flags) == CURLUE_OK else { return nil }
        // It is for the client, and no origin receives it.
        curl_url_set(base, CURLUPART_FRAGMENT, nil, 0)
        guard let text = self.part(CURLUPART_URL, of: base) else { return nil }
        guard let user, self.part(CURLUPART_USER, of: base) == nil,
            (try? ResourceAddress(text))?.origin == address.origin
        else { return text }
        curl_url_set(base, CURLUPART_USER, user, 0)
        curl_url_set(base, CURLUPART_PASSWORD, password, 0)
        return self.part(CURLUPART_URL, of: base)
    }

    /// Returns the fields that may go to another origin: they state wishes, and do not identify the user.
    static func safeHeaders(_ headers: HeaderFields) -> HeaderFields {
        headers.filter { WishFields.contains($0.name.lowercased()) }
    }

    /// Returns the options that may go to another origin: without credentials, client certificates and sockets of this
    /// machine, including the ones in the configuration.
    static func safeOptions(_ options: TransportOptions, configured: TLSPolicy) -> TransportOptions {
        var options = options
        options.credentials = nil
        options.unixSocketPath = nil
        var tls = options.tls ?? configured
        if tls.clientCertificate != nil {
            tls.clientCertificate = nil
            options.tls = tls
        }
        return options
    }

    private static func hasForeignScheme(_ location: String) -> Bool {
        guard let colon = location.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let scheme = location[..<colon].lowercased()
        let isScheme = scheme.utf8.first.map { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 } ?? false
        return isScheme && scheme != "http" && scheme != "https" && !scheme.utf8.contains { "/?#".utf8.contains($0) }
    }

    private static func part(_ part: CURLUPart, of url: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(url, part, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
