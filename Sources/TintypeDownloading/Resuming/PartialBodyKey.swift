// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
import FoundationEssentials
import TintypeHTTP

/// Which request the first bytes of a body belong to: a digest of all that selects a representation.
///
/// Credentials count, but cannot be read back from it.
struct PartialBodyKey: Sendable, Hashable {
    static let byteCount = 32

    /// The digest as 64 hexadecimal digits.
    let name: String

    /// The key of what `configuration` makes of `request`, or `nil` where cookies may select the representation:
    /// what a jar holds is not known, and changes.
    init?(_ request: DownloadRequest, _ configuration: DownloadActor.Configuration) {
        guard CookiePolicy.jar(of: request.cookies, configured: configuration.cookieJar) == nil else { return nil }
        var parts = [request.method.description, request.url.absoluteString]
        // A server whose certificate was not verified may have sent any bytes.
        parts.append(request.allowsInvalidCertificates ? "unverified" : "verified")
        for field in request.headers { parts += [field.name.lowercased(), field.value] }
        for field in configuration.requestHeaders where request.headers[field.name] == nil {
            parts += ["default", field.name.lowercased(), field.value]
        }
        if let credentials = request.credentials { parts.append(credentials.identity) }
        let tls = request.tls ?? configuration.tls
        if let certificate = tls.clientCertificate?.certificate { parts.append(certificate.base64EncodedString()) }
        switch tls.authorities {
        case .system: break
        case .file(let path): parts += ["authorities", path]
        case .pem(let text): parts += ["authorities", text.base64EncodedString()]
        }
        parts += tls.pinnedPublicKeys
        if let path = request.unixSocketPath { parts.append(path) }
        // Lengths keep two parts from looking like one.
        self.name = Self.digest(Array(parts.map { "\($0.utf8.count):\($0)" }.joined().utf8)[...])
            .map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Returns the source of a body: a digest of the address after the last redirect, without its fragment.
    ///
    /// The query of such an address may be a secret, which must not be readable on disk.
    static func source(_ address: ResourceAddress) -> [UInt8] {
        self.digest(Array(address.text.utf8.prefix { $0 != UInt8(ascii: "#") }))
    }

    /// The SHA-256 of some bytes.
    static func digest(_ bytes: some ContiguousBytes) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: self.byteCount) { output, count in
            bytes.withUnsafeBytes { input in
                _ = SHA256(input.baseAddress?.assumingMemoryBound(to: UInt8.self), input.count, output.baseAddress)
            }
            count = self.byteCount
        }
    }
}
