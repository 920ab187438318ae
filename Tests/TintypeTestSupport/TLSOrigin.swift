// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Glibc

/// An nginx with TLS whose certificate and protocols can be wrong in several ways.
///
/// It answers every path with the text `hello`, over HTTP/2 and HTTP/1.1.
public final class TLSOrigin: Sendable {
    /// The fault of the certificate.
    public enum Certificate: String, Sendable, CaseIterable {
        /// No fault, because the origin's own authority vouches for the certificate.
        case valid
        /// The certificate expired a day ago.
        case expired
        /// The certificate is for another host.
        case wrongHost
        /// The certificate vouches for itself.
        case selfSigned
    }

    /// The port that the origin listens on.
    public let port: Int
    private let certificates: TLSCertificates
    private let folder: TemporaryDirectory
    private let process: ChildProcess

    /// Starts the origin.
    ///
    /// - Parameters:
    ///   - certificate: The fault of its certificate.
    ///   - protocols: The supported versions of TLS in nginx's notation, such as `TLSv1.1`.
    ///   - asksForCertificate: Whether clients must present the ``clientCertificate()``.
    /// - Throws: An error that says what to install if nginx or openssl is missing.
    public init(
        _ certificate: Certificate = .valid,
        protocols: String = "TLSv1.2 TLSv1.3",
        asksForCertificate: Bool = false
    ) throws {
        let nginx = try Program.path(of: "nginx", package: "nginx-light")
        let certificates = try TLSCertificates.shared()
        let folder = try TemporaryDirectory(prefix: "tintype-tls")
        try FileManager.default.createDirectory(
            atPath: folder.path(of: "temporary"),
            withIntermediateDirectories: true
        )
        let (descriptor, port) = try LoopbackSocket.listen()
        defer { close(descriptor) }
        let configuration = """
            ssl_certificate \(certificates.folder.path(of: certificate.rawValue)).pem;
            ssl_certificate_key \(certificates.folder.path(of: "server.key"));
            ssl_protocols \(protocols);
            \(asksForCertificate ? "ssl_verify_client on; ssl_client_certificate \(certificates.authorityPath);" : "")
            """
        try folder.write(Self.configuration(folder.path, port, configuration).utf8, to: "nginx.conf")
        // The port is already open, so a client that connects before nginx is ready waits.
        self.process = try ChildProcess(
            [nginx, "-p", folder.path, "-c", "nginx.conf", "-e", "error.log"],
            environment: ["NGINX": "3;"],
            descriptors: [descriptor],
            log: folder.path(of: "output.log")
        )
        self.folder = folder
        self.certificates = certificates
        self.port = port
    }

    /// Returns the URL of a path, which starts with a slash.
    public func url(_ path: String = "/a") -> URL {
        let text = "https://127.0.0.1:\(self.port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        return url
    }

    /// The file with the certificate of the authority that vouches for a valid certificate.
    public var authorityPath: String { self.certificates.authorityPath }

    /// Returns a certificate for clients as PEM text.
    public func clientCertificate() throws -> Data {
        try Data(contentsOf: self.certificates.folder.url(of: "client.pem"))
    }

    /// Returns the private key of the client certificate as PEM text.
    public func clientKey() throws -> Data { try Data(contentsOf: self.certificates.folder.url(of: "client.key")) }

    /// Returns the SHA-256 digest of the server's public key in base64.
    public func publicKeyDigest() throws -> String {
        try String(contentsOf: self.certificates.folder.url(of: "pin"), encoding: .utf8).filter { !$0.isWhitespace }
    }

    private static func configuration(_ folder: String, _ port: Int, _ directives: String) -> String {
        // As root, nginx would start a worker that may not read the folder.
        let user = getuid() == 0 ? "user root;" : ""
        return """
            daemon off;
            worker_processes 1;
            \(user)
            pid \(folder)/nginx.pid;
            error_log \(folder)/error.log;
            events { worker_connections 512; }
            http {
                access_log off;
                client_body_temp_path \(folder)/temporary/1;
                proxy_temp_path \(folder)/temporary/2;
                fastcgi_temp_path \(folder)/temporary/3;
                uwsgi_temp_path \(folder)/temporary/4;
                scgi_temp_path \(folder)/temporary/5;
                server {
                    listen 127.0.0.1:\(port) ssl http2;
                    ssl_ciphers ALL:@SECLEVEL=0;
                    \(directives)
                    location / { return 200 hello; }
                }
            }
            """
    }
}
