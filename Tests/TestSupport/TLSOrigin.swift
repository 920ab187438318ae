public import FoundationEssentials
import Glibc
import TintypeConcurrency

/// A real nginx over TLS whose certificate and protocol are as wrong as a test wants them.
///
/// It answers every path with the text `hello`. It speaks HTTP/2 and HTTP/1.1.
public final class TLSOrigin: Sendable {
    /// What is the matter with the certificate.
    public enum Certificate: String, Sendable, CaseIterable {
        /// Nothing: the origin's own authority vouches for it.
        case valid
        /// It ended a day ago.
        case expired
        /// It is for another host.
        case wrongHost
        /// It vouches for itself.
        case selfSigned
    }

    /// The port that it listens on.
    public let port: Int
    private let folder: TemporaryDirectory
    private let process: ChildProcess

    /// Starts the origin.
    ///
    /// - Parameters:
    ///   - certificate: What is the matter with its certificate.
    ///   - protocols: What nginx calls the versions that it speaks, such as `TLSv1.1`.
    ///   - asksForCertificate: Whether clients must show the certificate that ``clientCertificate`` is.
    /// - Throws: An error that says what to install when nginx or openssl is missing.
    public init(
        _ certificate: Certificate = .valid,
        protocols: String = "TLSv1.2 TLSv1.3",
        asksForCertificate: Bool = false
    ) throws {
        let nginx = try Program.path(of: "nginx", package: "nginx-light")
        _ = try Program.path(of: "openssl", package: "openssl")
        let folder = try TemporaryDirectory(prefix: "tintype-tls")
        try ChildProcess.run(
            ["/bin/sh", "-c", Self.script(folder.path, certificate)],
            log: folder.path(of: "openssl.log")
        )
        try FileManager.default.createDirectory(
            atPath: folder.path(of: "temporary"),
            withIntermediateDirectories: true
        )
        let (descriptor, port) = try LoopbackSocket.listen()
        defer { close(descriptor) }
        let configuration = Self.configuration(folder.path, port, protocols, asksForCertificate)
        try folder.write(configuration.utf8, to: "nginx.conf")
        // The port is open already: a client that comes before nginx waits.
        self.process = try ChildProcess(
            [nginx, "-p", folder.path, "-c", "nginx.conf", "-e", "error.log"],
            environment: ["NGINX": "3;"],
            descriptors: [descriptor],
            log: folder.path(of: "output.log")
        )
        self.folder = folder
        self.port = port
    }

    /// The URL of a path, which starts with a slash.
    public func url(_ path: String = "/a") -> URL {
        let text = "https://127.0.0.1:\(self.port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        return url
    }

    /// The file with the certificate of the authority that vouches for a valid certificate.
    public var authorityPath: String { self.folder.path(of: "authority.pem") }

    /// A certificate for clients, as PEM text.
    public func clientCertificate() throws -> Data { try Data(contentsOf: self.folder.url(of: "client.pem")) }

    /// The private key of the certificate for clients, as PEM text.
    public func clientKey() throws -> Data { try Data(contentsOf: self.folder.url(of: "client.key")) }

    /// The SHA-256 digest of the server's public key, in base64.
    public func publicKeyDigest() throws -> String {
        try String(contentsOf: self.folder.url(of: "pin"), encoding: .utf8).filter { !$0.isWhitespace }
    }

    private static func script(_ folder: String, _ certificate: Certificate) -> String {
        let names =
            certificate == .wrongHost ? "DNS:other.example" : "DNS:localhost,IP:127.0.0.1"
        let days = certificate == .expired ? "-1" : "2"
        let signer = certificate == .selfSigned ? "-signkey server.key" : "-CA authority.pem -CAkey authority.key"
        return """
            set -e
            cd '\(folder)'
            key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
            openssl req -x509 $key -days 2 -subj /CN=authority -keyout authority.key -out authority.pem
            openssl req $key -subj /CN=localhost -addext 'subjectAltName=\(names)' -keyout server.key -out server.csr
            openssl x509 -req -in server.csr \(signer) -set_serial 1 -days \(days) -copy_extensions copy -out server.pem
            openssl req $key -subj /CN=client -keyout client.key -out client.csr
            openssl x509 -req -in client.csr -CA authority.pem -CAkey authority.key -set_serial 2 -days 2 -out client.pem
            openssl pkey -in server.key -pubout -outform der | openssl dgst -sha256 -binary | openssl base64 > pin
            """
    }

    private static func configuration(
        _ folder: String,
        _ port: Int,
        _ protocols: String,
        _ asksForCertificate: Bool
    ) -> String {
        // A master that is root would start a worker that may not read the folder.
        let user = getuid() == 0 ? "user root;" : ""
        let client =
            asksForCertificate ? "ssl_verify_client on; ssl_client_certificate \(folder)/authority.pem;" : ""
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
                    ssl_certificate \(folder)/server.pem;
                    ssl_certificate_key \(folder)/server.key;
                    ssl_protocols \(protocols);
                    ssl_ciphers ALL:@SECLEVEL=0;
                    \(client)
                    location / { return 200 hello; }
                }
            }
            """
    }
}
