public import FoundationEssentials

/// Which servers to trust over TLS, and how to prove one's own identity.
public struct TLSPolicy: Sendable, Hashable {
    /// A version of TLS.
    public enum Version: Sendable, Hashable {
        /// TLS 1.2 (RFC 5246).
        case tls1_2
        /// TLS 1.3 (RFC 8446).
        case tls1_3
    }

    /// The authorities that may vouch for a server.
    public enum Authorities: Sendable, Hashable {
        /// Those that the system trusts.
        case system
        /// Those in a file of PEM certificates, and no others.
        case file(path: String)
        /// Those in PEM text, and no others.
        case pem(Data)
    }

    /// A certificate of our own, for servers that ask for one.
    public struct ClientCertificate: Sendable, Hashable, CustomStringConvertible {
        /// The certificate, and those that vouch for it, as PEM text.
        public var certificate: Data
        /// Its private key as PEM text.
        public var privateKey: Data
        /// What the private key is encrypted with, or `nil` where it is not.
        public var password: String?

        /// Creates a certificate from PEM texts.
        public init(certificate: Data, privateKey: Data, password: String? = nil) {
            self.certificate = certificate
            self.privateKey = privateKey
            self.password = password
        }

        /// The kind; what is secret is not shown.
        public var description: String { "a client certificate" }
    }

    /// The oldest version that is spoken; default 1.2.
    public var minimumVersion = Version.tls1_2
    /// The authorities that may vouch for a server; default those that the system trusts.
    public var authorities = Authorities.system
    /// Shown to servers that ask for one; redirects to another origin do not take it along.
    public var clientCertificate: ClientCertificate?
    /// SHA-256 digests, in base64, of the public keys (`SubjectPublicKeyInfo`) that a server may have; empty for any.
    ///
    /// They hold for every server that the request reaches. The certificate is verified as well, unless the
    /// request allows invalid ones.
    public var pinnedPublicKeys: [String] = []

    /// Creates the policy with the defaults.
    public init() {}
}
