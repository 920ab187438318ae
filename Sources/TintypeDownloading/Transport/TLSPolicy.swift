// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The rules for trust in servers over TLS, and the client's own certificate.
public struct TLSPolicy: Sendable, Hashable {
    /// A version of TLS.
    public enum Version: Sendable, Hashable {
        /// TLS 1.2 (RFC 5246).
        case tls1_2
        /// TLS 1.3 (RFC 8446).
        case tls1_3
    }

    /// The authorities that may certify a server.
    public enum Authorities: Sendable, Hashable {
        /// The authorities that the system trusts: the file that libcurl was built with.
        ///
        /// On Debian it is `/etc/ssl/certs/ca-certificates.crt`. libcurl reads it again after a day.
        case system
        /// Only the authorities in a file of PEM certificates.
        case file(path: String)
        /// Only the authorities in a PEM text.
        case pem(Data)
    }

    /// A client certificate, for servers that request one.
    public struct ClientCertificate: Sendable, Hashable, CustomStringConvertible {
        /// The certificate and its chain, as PEM text.
        public var certificate: Data
        /// Its private key as PEM text.
        public var privateKey: Data
        /// The password of the private key, or `nil` if it is not encrypted.
        public var password: String?

        /// Creates a certificate from PEM texts.
        ///
        /// ```swift
        /// var policy = TLSPolicy()
        /// policy.clientCertificate = .init(
        ///     certificate: try Data(contentsOf: URL(filePath: "/etc/images/client.pem")),
        ///     privateKey: try Data(contentsOf: URL(filePath: "/etc/images/client.key"))
        /// )
        /// ```
        public init(certificate: Data, privateKey: Data, password: String? = nil) {
            self.certificate = certificate
            self.privateKey = privateKey
            self.password = password
        }

        /// The kind, without secrets.
        public var description: String { "a client certificate" }
    }

    /// The oldest version to use; default 1.2.
    public var minimumVersion = Version.tls1_2
    /// The authorities that may certify a server; by default the ones that the system trusts.
    public var authorities = Authorities.system
    /// The client certificate for servers that request one; not sent after a redirect to another origin.
    public var clientCertificate: ClientCertificate?
    /// SHA-256 digests, in base64, of the public keys (`SubjectPublicKeyInfo`) that a server may have; empty for any.
    ///
    /// They apply to every server that the request reaches. The downloader also verifies the certificate, unless the
    /// request accepts invalid ones.
    public var pinnedPublicKeys: [String] = []

    /// Creates the policy with the defaults.
    ///
    /// ```swift
    /// var configuration = LoaderActor.Configuration()
    /// configuration.downloads.tls = TLSPolicy()
    /// configuration.downloads.tls.minimumVersion = .tls1_3
    /// ```
    public init() {}
}
