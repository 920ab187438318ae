// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport

@testable import TintypeServer

/// A real S3 store (moto), which refuses wrong signatures.
final class S3Origin: Sendable {
    /// A request that the store has logged.
    struct Request: Decodable {
        let target: String
        let fault: String?
        let host: String?
        let authorization: String?
        let token: String?
        let cookie: String?

        private enum CodingKeys: String, CodingKey {
            case target
            case fault
            case host = "HTTP_HOST"
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
    static let shared = Task { try await S3Origin() }

    private static let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let python = tests.appending(path: ".venv/bin/python").path

    /// Whether `.ci/setup test` has installed the store.
    static let isInstalled =
        access(python, X_OK) == 0
        && access(tests.appending(path: ".venv/installed").path, R_OK) == 0

    let port: Int
    /// The version of the first body of `versions/v.jpg`.
    let version: String
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
    func requests(containing text: String) throws -> [Request] {
        let log = String(decoding: try Data(contentsOf: self.folder.url(of: "log")), as: UTF8.self)
        return try log.split(separator: "\n").filter { $0.hasPrefix("{") && $0.contains(text) }
            .map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
    }

    /// Returns a fetcher of the store.
    func fetcher(
        key: AWSSigningKey? = .test,
        host: String = "127.0.0.1",
        style: S3Endpoint.Style = .path,
        downloads: DownloadActor = .public
    ) throws -> S3Fetcher {
        let url = try #require(URL(string: "http://\(host):\(self.port)"))
        return S3Fetcher(endpoint: try S3Endpoint(url: url, style: style), key: key, fetcher: downloads)
    }
}

extension AWSSigningKey {
    static let test = AWSSigningKey(
        accessKey: "AKTEST",
        secretKey: "s3cr/et+key",
        region: "us-east-1",
        service: "s3"
    )
}

extension DownloadActor {
    /// A downloader for the public internet, which must not reach this machine by itself.
    static var `public`: DownloadActor {
        var configuration = Configuration()
        configuration.networkPolicy = .publicInternet
        configuration.retryPolicy = RetryPolicy(maximumAttempts: 1)
        configuration.timeout = .seconds(60)
        configuration.firstByteTimeout = nil
        return DownloadActor(configuration: configuration)
    }
}

extension ImageFetching {
    /// Returns the response for a URL.
    func response(
        at text: String,
        change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws -> DownloadResponse {
        var request = DownloadRequest(url: try #require(URL(string: text)))
        change(&request)
        return try await self.response(for: request, observer: FetchObserver())
    }

    /// Returns the error that a request for a URL must fail with.
    func error(
        at text: String,
        sourceLocation: SourceLocation = #_sourceLocation,
        change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws -> DownloadError {
        let error = await #expect(throws: DownloadError.self, sourceLocation: sourceLocation) {
            try await self.response(at: text, change: change)
        }
        return try #require(error, sourceLocation: sourceLocation)
    }
}
