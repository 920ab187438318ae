// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Glibc
import Synchronization

/// An nginx that serves a temporary folder on a free port of 127.0.0.1, as the ordinary origin of tests.
///
/// ```swift
/// let origin = try NginxOrigin(files: ["a.jpg": bytes])
/// let url = origin.url("/a.jpg")
/// ...
/// #expect(try origin.requestCount(for: "/a.jpg") == 1)
/// ```
///
/// It supports validators (`ETag`, `Last-Modified`), ranges, conditional requests and keep-alive. It ends with
/// ``stop()``, when the object goes away, or when the tests crash.
public final class NginxOrigin: Sendable {
    /// The port for HTTP/1.1.
    public let port: Int
    /// The port for HTTP/2 and HTTP/1.1 over TLS with a self-signed certificate, if the origin serves TLS.
    public let tlsPort: Int?

    private let folder: TemporaryDirectory
    private let process: ChildProcess
    private let barriers = Atomic<Int>(0)

    /// Starts nginx, and returns when it answers.
    ///
    /// - Parameters:
    ///   - files: The files to serve, by path without the first slash.
    ///   - servesTLS: Whether to open a TLS port as well.
    ///   - socketPath: A Unix-domain socket to listen on as well.
    ///   - directives: More lines for the server's configuration.
    ///   - connections: The number of simultaneous connections.
    /// - Throws: An error that says what to install if nginx is missing, or openssl for TLS.
    public init(
        files: [String: Data] = [:],
        servesTLS: Bool = false,
        socketPath: String? = nil,
        directives: String = "",
        connections: Int = 4_096
    ) throws {
        let program = try Program.path(of: "nginx", package: "nginx-light")
        let folder = try TemporaryDirectory(prefix: "tintype-nginx")
        // Open the ports here and pass them to nginx, as nginx itself does when it is upgraded. So no other program can
        // take a port, and clients may connect before nginx is ready.
        let plain = try LoopbackSocket.listen()
        defer { close(plain.descriptor) }
        let tls = try servesTLS ? LoopbackSocket.listen() : nil
        defer { if let tls { close(tls.descriptor) } }
        if servesTLS { try Self.makeCertificate(in: folder) }
        let configuration = Self.configuration(
            folder: folder.path,
            port: plain.port,
            tlsPort: tls?.port,
            socketPath: socketPath,
            directives: directives,
            connections: connections
        )
        try folder.write(configuration.utf8, to: "nginx.conf")
        for name in ["www", "temporary"] {
            try FileManager.default.createDirectory(
                atPath: folder.path(of: name),
                withIntermediateDirectories: true
            )
        }
        let descriptors = [plain.descriptor] + (tls.map { [$0.descriptor] } ?? [])
        self.process = try ChildProcess(
            [program, "-p", folder.path, "-c", "nginx.conf", "-e", "error.log"],
            environment: ["NGINX": descriptors.indices.map { "\($0 + 3);" }.joined()],
            descriptors: descriptors,
            log: folder.path(of: "output.log")
        )
        self.folder = folder
        self.port = plain.port
        self.tlsPort = tls?.port
        for (name, content) in files { try self.write(content, to: name) }
        try self.waitUntilReady()
    }

    /// Ends nginx and waits for its end, and does nothing at a second call.
    public func stop() {
        self.process.stop()
    }

    /// Returns the URL of a path, which starts with a slash.
    public func url(_ path: String) -> URL {
        Self.url("http://127.0.0.1:\(self.port)\(path)")
    }

    /// Returns the URL of a path on the TLS port, which the origin must have.
    public func tlsURL(_ path: String) -> URL {
        guard let tlsPort else { preconditionFailure("this origin was made without TLS") }
        return Self.url("https://127.0.0.1:\(tlsPort)\(path)")
    }

    /// Adds or replaces a file whose path without the first slash is `name`.
    public func write(_ content: some Collection<UInt8>, to name: String) throws {
        try self.folder.write(content, to: "www/\(name)")
    }

    /// Returns the number of answered requests for a path, without its query.
    public func requestCount(for path: String) throws -> Int {
        try self.requests().count { $0.path == path }
    }

    /// Returns every answered request, in order.
    ///
    /// Their `ifNoneMatch` and `status` show whether a cached response was revalidated.
    public func requests() throws -> [NginxRequest] {
        // nginx writes its log after the answer, and its single worker handles one request after the other. So the
        // answer to this request means that all earlier requests are logged.
        let barrier = "/.barrier-\(self.barriers.add(1, ordering: .relaxed).newValue)"
        try self.get(barrier)
        let log = try Data(contentsOf: URL(filePath: self.folder.path(of: "access.log")))
        return String(decoding: log, as: UTF8.self).split(separator: "\n").compactMap { NginxRequest(logLine: $0) }
            .filter { !$0.path.hasPrefix("/.barrier-") }
    }

    private static func url(_ text: String) -> URL {
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        return url
    }

    private func waitUntilReady() throws {
        do {
            try self.get("/.barrier-0")
        } catch {
            self.process.stop()
            let log = (try? Data(contentsOf: URL(filePath: self.folder.path(of: "output.log")))) ?? Data()
            let errors = (try? Data(contentsOf: URL(filePath: self.folder.path(of: "error.log")))) ?? Data()
            throw TestSupportError("nginx did not start: \(String(decoding: log + errors, as: UTF8.self))")
        }
    }

    /// Requests a path and waits for the end of the answer.
    private func get(_ path: String) throws {
        let connection = try LoopbackSocket.connect(port: self.port)
        defer { close(connection) }
        let request = "GET \(path) HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
        guard LoopbackSocket.send(Array(request.utf8), to: connection),
            LoopbackSocket.receive(from: connection) != nil
        else { throw TestSupportError("nginx closed the connection without an answer.") }
        while LoopbackSocket.receive(from: connection) != nil {}
    }

    private static func makeCertificate(in folder: TemporaryDirectory) throws {
        let openssl = try Program.path(of: "openssl", package: "openssl")
        try ChildProcess.run(
            [
                openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout", folder.path(of: "key.pem"), "-out", folder.path(of: "certificate.pem"),
            ],
            log: folder.path(of: "openssl.log")
        )
    }

    private static func configuration(
        folder: String,
        port: Int,
        tlsPort: Int?,
        socketPath: String?,
        directives: String,
        connections: Int
    ) -> String {
        let socket = socketPath.map { "listen unix:\($0);" } ?? ""
        let tls =
            tlsPort.map {
                """
                listen 127.0.0.1:\($0) ssl http2;
                ssl_certificate \(folder)/certificate.pem;
                ssl_certificate_key \(folder)/key.pem;
                """
            } ?? ""
        // As root, nginx would start a worker that may not read the folder. Without a master process, nginx 1.22
        // crashes with inherited ports.
        let user = getuid() == 0 ? "user root;" : ""
        return """
            daemon off;
            worker_processes 1;
            \(user)
            pid \(folder)/nginx.pid;
            error_log \(folder)/error.log;
            events { worker_connections \(connections); }
            http {
                types {
                    image/jpeg jpg jpeg; image/png png; image/webp webp; image/gif gif; text/html html;
                }
                log_format counted '$server_protocol $request_method $status $connection $request_uri "$http_if_none_match"';
                access_log \(folder)/access.log counted;
                keepalive_requests 1000000;
                http2_max_concurrent_streams 128;
                client_body_temp_path \(folder)/temporary/1;
                proxy_temp_path \(folder)/temporary/2;
                fastcgi_temp_path \(folder)/temporary/3;
                uwsgi_temp_path \(folder)/temporary/4;
                scgi_temp_path \(folder)/temporary/5;
                server {
                    listen 127.0.0.1:\(port);
                    \(tls)
                    \(socket)
                    \(directives)
                    root \(folder)/www;
                }
            }
            """
    }
}
