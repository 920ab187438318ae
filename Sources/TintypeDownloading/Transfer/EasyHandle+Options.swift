// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import FoundationEssentials
import TintypeHTTP

/// Request header fields in the form that libcurl reads.
final class HeaderList {
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// Makes the lines of a request's head; nothing becomes one elsewhere.
    init(_ headers: HeaderFields) throws(DownloadError) {
        try headers.checkSendable()
        for field in headers {
            // libcurl takes "Name:" as the wish to leave a field out; "Name;" sends it empty.
            let isBlank = field.value.utf8.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            let line = isBlank ? "\(field.name);" : "\(field.name): \(field.value)"
            // Without memory the old list stays as it is; a request must not go without one of its fields.
            guard let list = curl_slist_append(self.list, line) else { throw .outOfMemoryForHeaders() }
            self.list = list
        }
    }

    deinit {
        curl_slist_free_all(self.list)
    }
}

// The settings that only some requests or configurations have.

extension EasyHandle {
    /// Returns false without memory for a copy of the body.
    func set(_ options: TransportOptions) -> Bool {
        guard self.set(options.method) else { return false }
        if let path = options.unixSocketPath {
            ccurl_setopt_string(self.easy, CURLOPT_UNIX_SOCKET_PATH, path)
            // The ports cannot tell such sockets apart, and HTTP/2 needs the socket whose frames are watched.
            self.setHTTPVersion(CURL_HTTP_VERSION_1_1)
        }
        switch options.credentials?.value {
        case .basic(let user, let password):
            self.set(user, password, user: CURLOPT_USERNAME, password: CURLOPT_PASSWORD)
            ccurl_setopt_long(self.easy, CURLOPT_HTTPAUTH, Self.basic)
        case .digest(let user, let password):
            self.set(user, password, user: CURLOPT_USERNAME, password: CURLOPT_PASSWORD)
            ccurl_setopt_long(self.easy, CURLOPT_HTTPAUTH, Self.digest)
        case .bearer(let token):
            ccurl_setopt_string(self.easy, CURLOPT_XOAUTH2_BEARER, token)
            ccurl_setopt_long(self.easy, CURLOPT_HTTPAUTH, Self.bearer)
        case .awsSignature(let key):
            // A libcurl that cannot sign would send the secret itself, as a password.
            guard ccurl_setopt_string(self.easy, CURLOPT_AWS_SIGV4, key.parameter) == CURLE_OK else { break }
            self.set(key.accessKey, key.secretKey, user: CURLOPT_USERNAME, password: CURLOPT_PASSWORD)
        case nil: break
        }
        return true
    }

    private func set(_ method: DownloadRequest.Method) -> Bool {
        if method == .head { return ccurl_setopt_long(self.easy, CURLOPT_NOBODY, 1) == CURLE_OK }
        if let body = method.body {
            // Not CURLOPT_UPLOAD: every libcurl hashes these bytes for its signature, and sends them again by itself
            // over another connection.
            let code = body.data.withUnsafeBytes { ccurl_copy_body(self.easy, $0.baseAddress, $0.count) }
            guard code == CURLE_OK else { return false }
        }
        guard !method.isSafe else { return true }
        return ccurl_setopt_string(self.easy, CURLOPT_CUSTOMREQUEST, method.description) == CURLE_OK
    }

    func use(_ jar: CookieJar) {
        if let share = jar.store.share { ccurl_setopt_share(self.easy, share) }
        // No file: the name only turns cookies on.
        ccurl_setopt_string(self.easy, CURLOPT_COOKIEFILE, "")
    }

    /// Returns false if libcurl refuses a setting: then the handle must not be used, because libcurl would trust or send
    /// what the policy excludes.
    func set(_ policy: TLSPolicy) -> Bool {
        let version = policy.minimumVersion == .tls1_3 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        var codes = [ccurl_setopt_long(self.easy, CURLOPT_SSLVERSION, Int(version))]
        // libcurl keeps the certificates of a file. If there is a folder as well, it parses all of them again for each
        // connection. The system's file and folder have the same ones.
        if ccurl_has_authorities_file() != 0 {
            ccurl_setopt_string(self.easy, CURLOPT_PROXY_CAPATH, nil)
            if policy.authorities == .system { ccurl_setopt_string(self.easy, CURLOPT_CAPATH, nil) }
        }
        switch policy.authorities {
        case .system: break
        case .file(let path):
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_CAINFO, path))
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_CAPATH, nil))
        case .pem(let text):
            codes.append(self.set(text, CURLOPT_CAINFO_BLOB))
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_CAPATH, nil))
        }
        if let certificate = policy.clientCertificate {
            codes.append(self.set(certificate.certificate, CURLOPT_SSLCERT_BLOB))
            codes.append(self.set(certificate.privateKey, CURLOPT_SSLKEY_BLOB))
            if let password = certificate.password {
                codes.append(ccurl_setopt_string(self.easy, CURLOPT_KEYPASSWD, password))
            }
        }
        if !policy.pinnedPublicKeys.isEmpty {
            let keys = policy.pinnedPublicKeys.map { "sha256//\($0)" }.joined(separator: ";")
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_PINNEDPUBLICKEY, keys))
        }
        return codes.allSatisfy { $0 == CURLE_OK }
    }

    func setHTTPVersion(_ version: Int) {
        ccurl_setopt_long(self.easy, CURLOPT_HTTP_VERSION, version)
    }

    /// Returns false if libcurl refuses a setting: it would go straight to the server.
    func set(_ proxy: ProxyPolicy) -> Bool {
        var codes: [CURLcode] = []
        // The frames of HTTP/2 would be under two layers of TLS, and only one can be looked into.
        if proxy.mayUseTLS { self.setHTTPVersion(CURL_HTTP_VERSION_1_1) }
        switch proxy.value {
        case .none:
            // Without this libcurl reads eight environment variables for each transfer.
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_PROXY, ""))
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_NOPROXY, ""))
        case .environment: break
        case .explicit(let url, let credentials, let exceptions):
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_PROXY, url))
            codes.append(ccurl_setopt_string(self.easy, CURLOPT_NOPROXY, exceptions.joined(separator: ",")))
            switch credentials?.value {
            case .basic(let user, let password):
                self.set(user, password, user: CURLOPT_PROXYUSERNAME, password: CURLOPT_PROXYPASSWORD)
                ccurl_setopt_long(self.easy, CURLOPT_PROXYAUTH, Self.basic)
            case .digest(let user, let password):
                self.set(user, password, user: CURLOPT_PROXYUSERNAME, password: CURLOPT_PROXYPASSWORD)
                ccurl_setopt_long(self.easy, CURLOPT_PROXYAUTH, Self.digest)
            case .bearer, .awsSignature, nil: break
            }
        }
        return codes.allSatisfy { $0 == CURLE_OK }
    }

    private func set(_ user: String, _ password: String, user userOption: CURLoption, password option: CURLoption) {
        ccurl_setopt_string(self.easy, userOption, user)
        ccurl_setopt_string(self.easy, option, password)
    }

    private func set(_ bytes: Data, _ option: CURLoption) -> CURLcode {
        bytes.withUnsafeBytes { ccurl_setopt_blob(self.easy, option, $0.baseAddress, $0.count) }
    }

    // CURLAUTH_BASIC, _DIGEST and _BEARER: macros with casts, which Swift does not import.
    private static let basic = 1 << 0
    private static let digest = 1 << 1
    private static let bearer = 1 << 6
}
