// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport

@testable import TintypeDownloading

extension S3Origin {
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
