// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import TintypeHTTP

// The checks of texts before they become lines of a request's head.

extension DownloadRequest {
    /// Throws if any part of the request would break its head.
    func checkSendable() throws(DownloadError) {
        try self.headers.checkSendable()
        try self.credentials?.checkSendable("credentials")
        try self.proxy?.checkSendable()
        guard self.unixSocketPath.map(FieldText.isPlain) ?? true else { throw .notSendable("path of the socket") }
    }
}

extension DownloadActor.Configuration {
    /// Throws if a text of the configuration would break the head of each request.
    func checkSendable() throws(DownloadError) {
        try self.requestHeaders.checkSendable()
        try self.proxy.checkSendable()
    }
}

extension HeaderFields {
    /// Throws if a field would end its own line and so forge another one, if it is not a field, or if it controls how
    /// messages follow one another on the connection.
    func checkSendable() throws(DownloadError) {
        for field in self {
            guard FieldText.isToken(field.name), FieldText.isValue(field.value) else {
                throw .invalidHeader(field.name)
            }
            guard !FieldText.isAboutConnection(field.name) else { throw .connectionHeader(field.name) }
        }
    }
}

extension Credentials {
    fileprivate func checkSendable(_ what: String) throws(DownloadError) {
        if case .awsSignature = self.value, ccurl_signs_fields() == 0 { throw .cannotSign() }
        let isSendable =
            switch self.value {
            // The first colon would end the name (RFC 7617, 2).
            case .basic(let user, let password):
                FieldText.isPlain(user) && FieldText.isPlain(password) && !user.utf8.contains(UInt8(ascii: ":"))
            case .digest(let user, let password): FieldText.isPlain(user) && FieldText.isPlain(password)
            case .bearer(let token): FieldText.isPlain(token)
            case .awsSignature(let key): key.isSendable
            }
        guard isSendable else { throw .notSendable(what) }
    }
}

extension ProxyPolicy {
    fileprivate func checkSendable() throws(DownloadError) {
        guard case .explicit(let url, let credentials, let exceptions) = self.value else { return }
        // The user and the password in it are decoded.
        guard FieldText.isPlain(url), FieldText.isPlain(PercentEncoding.decode(url.utf8)) else {
            throw .notSendable("URL of the proxy")
        }
        guard Self.namesProxy(url) else { throw .noProxy() }
        guard exceptions.allSatisfy({ FieldText.isPlain($0) }) else { throw .notSendable("exceptions of the proxy") }
        try credentials?.checkSendable("credentials for the proxy")
    }
}
