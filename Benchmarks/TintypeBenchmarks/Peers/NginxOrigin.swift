// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A real web server over a temporary folder: every client meets the same one.
struct NginxOrigin: Sendable {
    /// The URL of the origin, ending in a slash.
    let base: String
    /// The URL of the origin over TLS, with HTTP/2 and HTTP/1.1, ending in a slash.
    let tlsBase: String
    /// The same with HTTP/1.1 alone, and a new connection for each request.
    let closingBase: String
    /// The origin's self-signed certificate, which is also its authority.
    let certificate: URL
    /// The folder of files to serve.
    let root: URL
    private let process: ChildProcess

    /// Starts nginx on a free port and waits until it answers.
    static func start(in folders: Folders) async throws -> NginxOrigin {
        guard let nginx = self.candidates.first(where: FileManager.default.isExecutableFile) else {
            throw Unavailable("no origin: nginx is not installed (apt install nginx-light)")
        }
        let folder = folders.temporary.appendingPathComponent("nginx")
        let root = folder.appendingPathComponent("root")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        let port = try self.freePort()
        let tlsPort = try self.freePort()
        let closingPort = try self.freePort()
        let trust = OriginTrust.folder ?? folder
        if OriginTrust.folder == nil { try OriginTrust.makeCertificate(in: folder) }
        let certificate = trust.appendingPathComponent("certificate.pem")
        let configuration = folder.appendingPathComponent("nginx.conf")
        try self.configuration(folder.path, port, tlsPort, closingPort, trust.path).write(
            to: configuration,
            atomically: true,
            encoding: .utf8
        )
        let command = [nginx, "-p", folder.path, "-e", "stderr", "-c", configuration.path]
        let process = try await BlockingLane.shared.run {
            try ChildProcess(self.dyingWithUs + command, output: .discarded)
        }
        let origin = NginxOrigin(
            base: "http://127.0.0.1:\(port)/",
            tlsBase: "https://127.0.0.1:\(tlsPort)/",
            closingBase: "https://127.0.0.1:\(closingPort)/",
            certificate: certificate,
            root: root,
            process: process
        )
        try await origin.waitUntilReady()
        return origin
    }

    /// Puts a file of `size` bytes that do not compress under `name` and returns its address.
    func serve(_ name: String, size: Int) throws -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = Data((0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) })
        return try self.serve(name, bytes)
    }

    /// Puts a file of `mebibytes` under `name`, for one that is too large to fill with chance.
    func serveLarge(_ name: String, mebibytes: Int) throws -> String {
        var generator = SystemRandomNumberGenerator()
        let block = Data((0..<1 << 20).map { _ in UInt8.random(in: 0...255, using: &generator) })
        let file = self.root.appendingPathComponent(name)
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        for _ in 0..<mebibytes { try handle.write(contentsOf: block) }
        try handle.close()
        return self.base + name
    }

    /// Puts `bytes` under `name` and returns the address.
    func serve(_ name: String, _ bytes: Data) throws -> String {
        try bytes.write(to: self.root.appendingPathComponent(name))
        return self.base + name
    }

    /// Returns the number of requests answered so far, including this one.
    func requestCount() async throws -> Int {
        guard let url = URL(string: self.base + "status") else { throw Unavailable("bad address \(self.base)") }
        let text = String(decoding: try await URLSession.shared.data(from: url).0, as: UTF8.self)
        // The third line: accepted, handled, requests.
        let numbers = text.split(separator: "\n").dropFirst(2).first?.split(separator: " ").compactMap { Int($0) }
        guard let numbers, numbers.count == 3 else { throw Unavailable("nginx gave no status: \(text)") }
        return numbers[2]
    }

    /// Stops it.
    func end() async {
        self.process.terminate()
        _ = try? await BlockingLane.shared.run { self.process.wait() }
    }

    static let candidates = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]

    /// Takes a server down with the harness, should that end in a crash.
    ///
    /// The system looks at the thread that started the server, so start it on the ``BlockingLane``.
    static var dyingWithUs: [String] {
        let path = "/usr/bin/setpriv"
        return FileManager.default.isExecutableFile(atPath: path) ? [path, "--pdeathsig", "TERM"] : []
    }

    /// Returns the lines of a configuration that keep temporary files in `folder`.
    static func temporaryFolders(in folder: String) -> String {
        """
        client_body_temp_path \(folder)/body;
        proxy_temp_path \(folder)/proxy;
        fastcgi_temp_path \(folder)/fastcgi;
        uwsgi_temp_path \(folder)/uwsgi;
        scgi_temp_path \(folder)/scgi;
        """
    }

    private static func configuration(
        _ folder: String,
        _ port: UInt16,
        _ tlsPort: UInt16,
        _ closingPort: UInt16,
        _ trust: String
    ) -> String {
        """
        daemon off;
        \(getuid() == 0 ? "user root;" : "")
        worker_processes 1;
        pid \(folder)/nginx.pid;
        error_log stderr crit;
        events { worker_connections 4096; }
        http {
            access_log off;
            \(Self.temporaryFolders(in: folder))
            default_type application/octet-stream;
            types { image/jpeg jpg; image/png png; image/webp webp; }
            sendfile on;
            tcp_nopush on;
            open_file_cache max=100;
            keepalive_requests 1000000;
            keepalive_timeout 300;
            http2_max_concurrent_streams 128;
            http2_chunk_size 64k;
            ssl_buffer_size 16k;
            server {
                listen 127.0.0.1:\(port) backlog=1024;
                listen 127.0.0.1:\(tlsPort) ssl http2 backlog=1024;
                ssl_certificate \(trust)/certificate.pem;
                ssl_certificate_key \(trust)/key.pem;
                root \(folder)/root;
                location = /status { stub_status; }
            }
            server {
                listen 127.0.0.1:\(closingPort) ssl backlog=1024;
                ssl_certificate \(trust)/certificate.pem;
                ssl_certificate_key \(trust)/key.pem;
                keepalive_timeout 0;
                root \(folder)/root;
            }
        }
        """
    }

    /// Returns a port of the loopback interface that nobody uses.
    static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw Unavailable("no origin: no free port") }
        return UInt16(bigEndian: address.sin_port)
    }

    private func waitUntilReady() async throws {
        for _ in 0..<100 {
            if (try? await self.requestCount()) != nil { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw Unavailable("no origin: nginx did not answer within two seconds")
    }
}
