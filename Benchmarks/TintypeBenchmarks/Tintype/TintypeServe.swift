// SPDX-License-Identifier: Apache-2.0

import Foundation

/// `tintype serve`, built beside the harness, with its default settings.
struct TintypeServe: Sendable {
    /// The settings that all rows have: sources on the loopback interface, and no lines for requests.
    static let note = "defaults, disk cache included, on a new folder; --log-level error"

    let server: MeasuredServer

    /// Runs `body` with a new server, and ends it afterwards.
    static func with<Result: Sendable>(
        _ session: Session,
        options: [String] = [],
        _ body: (TintypeServe) async throws -> Result
    ) async throws -> Result {
        let serve = try await self.start(session, options: options)
        do {
            let result = try await body(serve)
            await serve.server.end()
            return result
        } catch {
            await serve.server.end()
            throw error
        }
    }

    /// Starts a server with `options` and an empty cache.
    static func start(_ session: Session, options: [String] = []) async throws -> TintypeServe {
        let harness = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let command = URL(fileURLWithPath: harness).deletingLastPathComponent().appendingPathComponent("tintype").path
        guard FileManager.default.isExecutableFile(atPath: command) else {
            throw Unavailable("no server: build it with make build")
        }
        let port = try NginxOrigin.freePort()
        let cache = session.folders.temporary.appendingPathComponent("server-cache-\(UUID())").path
        let settings = [
            "--listen", "127.0.0.1:\(port)", "--allow-network", "127.0.0.0/8", "--cache-dir", cache, "--log-level",
            "error",
        ]
        return TintypeServe(
            server: try await MeasuredServer.start(
                [command, "serve"] + settings + options,
                port: port,
                answering: "health",
                session.folders
            )
        )
    }

    /// Returns the target that fits `source` into a square of 512 pixels, as `format`.
    static func target(_ source: String, _ format: String, side: Int = 512) -> String {
        "/unsafe/rs:fit:\(side):\(side)/q:80/plain/\(source.replacingOccurrences(of: "?", with: "%3F"))@\(format)"
    }

    /// Returns the sum of the metrics whose line begins with `name`.
    func metric(_ name: String) async throws -> Double {
        let text = String(decoding: try await self.server.get("metrics").body, as: UTF8.self)
        let lines = text.split(separator: "\n").filter { $0.hasPrefix(name) }
        guard !lines.isEmpty else { throw Unavailable("the server has no metric \(name)") }
        return lines.reduce(0) { $0 + (Double($1.split(separator: " ").last ?? "") ?? 0) }
    }

    /// The number of times that a phase of images has ended, such as `encode`.
    func count(ofPhase phase: String) async throws -> Double {
        try await self.metric("tintype_http_phase_duration_seconds_count{phase=\"\(phase)\"}")
    }

    /// Waits until `condition` is true, and returns the seconds since the call, or `nil` after `limit` seconds.
    static func seconds(
        within limit: Double,
        until condition: () async throws -> Bool
    ) async throws -> Double? {
        let time = Stopwatch(.monotonic)
        while time.seconds < limit {
            if try await condition() { return time.seconds }
            try await Task.sleep(for: .milliseconds(2))
        }
        return nil
    }
}
