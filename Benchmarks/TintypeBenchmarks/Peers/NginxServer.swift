// SPDX-License-Identifier: Apache-2.0

import Foundation

/// nginx as a peer of the server: static files, its module for images, and files that come late.
enum NginxServer {
    static let name = "nginx"
    static let imageFilter = "image_filter"
    static let echo = "echo"

    /// Starts it over the files of `origin`.
    ///
    /// `/fit/NAME` fits a file into a square of 512 pixels, and `/late/NAME` waits 10 seconds. A module that is not
    /// installed fails the start if it is among `modules`.
    static func start(
        workers: Int,
        modules: [String] = [],
        _ origin: NginxOrigin,
        _ session: Session
    ) async throws -> MeasuredServer {
        guard let nginx = NginxOrigin.candidates.first(where: FileManager.default.isExecutableFile) else {
            throw Unavailable("nginx is not installed (apt install nginx-light)")
        }
        for module in modules where !FileManager.default.fileExists(atPath: self.path(module)) {
            throw Unavailable(
                "nginx has no module \(module) (apt install libnginx-mod-http-\(module.replacing("_", with: "-")))"
            )
        }
        let port = try NginxOrigin.freePort()
        let folder = session.folders.temporary.appendingPathComponent("nginx-\(port)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let configuration = folder.appendingPathComponent("nginx.conf")
        try self.configuration(folder.path, port, workers, modules, origin).write(
            to: configuration,
            atomically: true,
            encoding: .utf8
        )
        let command = [nginx, "-p", folder.path, "-e", "stderr", "-c", configuration.path]
        return try await MeasuredServer.start(command, port: port, answering: "status", session.folders)
    }

    private static func path(_ module: String) -> String { "/usr/lib/nginx/modules/ngx_http_\(module)_module.so" }

    private static func configuration(
        _ folder: String,
        _ port: UInt16,
        _ workers: Int,
        _ modules: [String],
        _ origin: NginxOrigin
    ) -> String {
        """
        \(modules.map { "load_module \(self.path($0));" }.joined(separator: "\n"))
        daemon off;
        \(getuid() == 0 ? "user root;" : "")
        worker_processes \(workers);
        pid \(folder)/nginx.pid;
        error_log stderr crit;
        events { worker_connections 8192; }
        http {
            access_log off;
            \(NginxOrigin.temporaryFolders(in: folder))
            types { image/jpeg jpg; image/png png; image/webp webp; }
            sendfile on;
            tcp_nopush on;
            open_file_cache max=100;
            keepalive_requests 10000000;
            keepalive_timeout 300;
            server {
                listen 127.0.0.1:\(port) backlog=4096;
                root \(origin.root.path);
                location = /status { stub_status; }
                \(modules.contains("image_filter") ? self.fit(origin) : "")
                \(modules.contains("echo") ? "location ~ ^/late(/.*)$ { echo_sleep 10; echo_exec $1; }" : "")
            }
        }
        """
    }

    private static func fit(_ origin: NginxOrigin) -> String {
        """
        location /fit/ {
            proxy_pass \(origin.base);
            image_filter resize 512 512;
            image_filter_buffer 32M;
            image_filter_jpeg_quality 80;
            image_filter_webp_quality 80;
        }
        """
    }
}
