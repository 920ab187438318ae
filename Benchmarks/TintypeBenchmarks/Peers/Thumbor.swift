// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The server that the rows for new images compare with.
enum Thumbor {
    static let name = "thumbor"
    static let note = "two processes, no storage, baseline JPEG like ours"

    /// Starts it with two processes.
    static func start(_ session: Session) async throws -> MeasuredServer {
        let python = try await PythonEnvironment.thumbor.python(in: session.folders)
        let port = try NginxOrigin.freePort()
        let configuration = session.folders.temporary.appendingPathComponent("thumbor.conf")
        // The origin is on the loopback interface. A new size of each source is the work to measure.
        try """
        LOADER = 'thumbor.loaders.http_loader'
        STORAGE = 'thumbor.storages.no_storage'
        QUALITY = 80
        WEBP_QUALITY = 80
        PROGRESSIVE_JPEG = False

        """.write(to: configuration, atomically: true, encoding: .utf8)
        let command = [
            python, "-m", "thumbor.server", "--ip", "127.0.0.1", "--port", "\(port)", "--processes", "2", "--log-level",
            "error", "--conf", configuration.path,
        ]
        return try await MeasuredServer.start(command, port: port, answering: "healthcheck", session.folders)
    }

    /// Returns the target that fits `source` into a square of 512 pixels, as `format`.
    static func target(_ source: String, _ format: String) -> String {
        let address = source.replacingOccurrences(of: "http://", with: "").replacingOccurrences(of: "?", with: "%3F")
        return "/unsafe/fit-in/512x512/filters:quality(80):format(\(format))/\(address)"
    }
}
