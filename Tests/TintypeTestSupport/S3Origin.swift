// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// A real S3 store (moto), which refuses wrong signatures.
public final class S3Origin: Sendable {
    /// A request that the store has logged.
    public struct Request: Decodable {
        public let target: String
        public let authorization: String?
        public let token: String?
        public let cookie: String?

        private enum CodingKeys: String, CodingKey {
            case target
            case authorization = "HTTP_AUTHORIZATION"
            case token = "HTTP_X_AMZ_SECURITY_TOKEN"
            case cookie = "HTTP_COOKIE"
        }
    }

    private struct Ready: Decodable {
        let port: Int
        let version: String
    }

    /// The store of all tests, which takes seconds to start.
    public static let shared = Task { try await S3Origin() }

    private static let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    private static let python = tests.appending(path: ".venv/bin/python").path

    /// Whether `.ci/setup test` has installed the store.
    public static let isInstalled =
        access(python, X_OK) == 0
        && access(tests.appending(path: ".venv/installed").path, R_OK) == 0

    public let port: Int
    /// The version of the first body of `versions/v.jpg`.
    public let version: String
    private let folder: TemporaryDirectory
    private let process: ChildProcess

    init() async throws {
        let folder = try TemporaryDirectory(prefix: "tintype-s3")
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "s3_origin.py").path
        self.process = try ChildProcess(
            [Self.python, script, folder.path(of: "ready")],
            environment: ["HOME": folder.path],
            log: folder.path(of: "log")
        )
        await until { access(folder.path(of: "ready"), R_OK) == 0 }
        let ready = try JSONDecoder().decode(Ready.self, from: Data(contentsOf: folder.url(of: "ready")))
        self.port = ready.port
        self.version = ready.version
        self.folder = folder
    }

    /// Returns the requests so far that contain `text`.
    public func requests(containing text: String) throws -> [Request] {
        let log = String(decoding: try Data(contentsOf: self.folder.url(of: "log")), as: UTF8.self)
        return try log.split(separator: "\n").filter { $0.hasPrefix("{") && $0.contains(text) }
            .map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }
}
