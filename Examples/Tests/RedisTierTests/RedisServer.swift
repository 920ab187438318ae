// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeTestSupport

/// A Redis server that runs beside the tests and keeps nothing on disk.
final class RedisServer {
    let port: Int
    private let process: ChildProcess

    /// Starts a server, and returns when it accepts connections.
    init(in folder: TemporaryDirectory, port: Int? = nil) async throws {
        let log = folder.path(of: "redis.log")
        let earlier = Self.readyCount(log)
        self.port = try port ?? LoopbackSocket.freePort()
        self.process = try ChildProcess(
            [Program.path(of: "redis-server", package: "redis-server")]
                + ["--port", "\(self.port)", "--bind", "127.0.0.1", "--save", "", "--dir", folder.path],
            log: log
        )
        await until { Self.readyCount(log) > earlier }
    }

    func stop() {
        self.process.stop()
    }

    private static func readyCount(_ log: String) -> Int {
        let text = (try? Data(contentsOf: URL(filePath: log))).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return text.split(separator: "\n").count { $0.contains("Ready to accept connections") }
    }
}
