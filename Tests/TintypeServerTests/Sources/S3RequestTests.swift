// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// The requests that a fetcher of S3 sends, without a store.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct S3RequestTests {
    /// Returns the URL that is requested for an object.
    private func target(_ object: String, _ endpoint: S3Endpoint) throws -> String {
        let fetcher = S3Fetcher(endpoint: endpoint, key: .test, fetcher: DownloadActor.public)
        let url = try #require(URL(string: object))
        return try fetcher.webRequest(for: DownloadRequest(url: url)).url.absoluteString
    }

    @Test(arguments: [
        ("s3://photos/a%20b.jpg", "https://photos.s3.eu-central-1.amazonaws.com/a%20b.jpg"),
        ("S3://photos/a", "https://photos.s3.eu-central-1.amazonaws.com/a"),
        ("s3://photos/a?v%2B1", "https://photos.s3.eu-central-1.amazonaws.com/a?versionId=v%2B1"),
        ("s3://my.photos/a", "https://s3.eu-central-1.amazonaws.com/my.photos/a"),
        ("s3://My_Photos/a", "https://s3.eu-central-1.amazonaws.com/My_Photos/a"),
        ("s3://photos/é+", "https://photos.s3.eu-central-1.amazonaws.com/%C3%A9%2B"),
    ])
    func `Amazon's URLs have the bucket as a label if it can be one`(object: String, target: String) throws {
        #expect(try self.target(object, S3Endpoint(region: "eu-central-1")) == target)
    }

    @Test func `a custom endpoint has the bucket in the path by default`() throws {
        let url = try #require(URL(string: "http://Minio.internal:9000/base/"))
        #expect(try self.target("s3://photos/a", S3Endpoint(url: url)) == "http://minio.internal:9000/base/photos/a")
        let target = try self.target("s3://photos/a", S3Endpoint(url: url, style: .host))
        #expect(target == "http://photos.minio.internal:9000/base/a")
    }

    @Test func `a region of China has a domain of its own`() throws {
        let target = try self.target("s3://photos/a", S3Endpoint(region: "cn-north-1"))
        #expect(target == "https://photos.s3.cn-north-1.amazonaws.com.cn/a")
    }

    @Test(arguments: [
        "s3://", "s3://photos", "s3://photos/", "s3:///key", "s3:photos/key", "s3://ab/key", "s3://../key",
        "s3://a..b/key", "s3://a@b.c/key", "s3://photos:80/key", "s3://ph%6ftos/key", "s3://photos/a#b",
        "s3://photos/a%00b", "s3://photos/a%0Ab", "s3://photos/../private/key", "s3://photos/%2e%2E/key",
        "s3://photos/a/./b", "s3://photos/a%2F..%2Fb", "s3://photos/a/..", "s3://photos/a?v%00", "http://photos/a",
    ])
    func `a URL that names no object is invalid`(object: String) throws {
        let endpoint = try S3Endpoint(region: "eu-central-1")
        let error = #expect(throws: DownloadError.self) { try self.target(object, endpoint) }
        #expect(error?.code == .invalidURL)
    }

    @Test(arguments: ["", "EU", "eu/..", "a.evil.example", "a@b", "é"])
    func `a region that is not a name is refused`(region: String) {
        #expect(throws: DownloadError.self) { try S3Endpoint(region: region) }
    }

    @Test(arguments: [
        "ftp://minio", "minio:9000", "http://user:password@minio", "http://minio/?a", "http://minio/#a",
        "file:///a",
    ])
    func `an endpoint that is no plain URL of HTTP is refused`(text: String) throws {
        let url = try #require(URL(string: text))
        #expect(throws: DownloadError.self) { try S3Endpoint(url: url) }
    }

    @Test(arguments: ["http://127.0.0.1:9000", "http://[::1]:9000"])
    func `an address cannot have a bucket before it`(text: String) throws {
        let url = try #require(URL(string: text))
        #expect(throws: DownloadError.self) { try S3Endpoint(url: url, style: .host) }
        _ = try S3Endpoint(url: url)
    }

    @Test func `a redirect to another host gets no signature, no token and no key`() async throws {
        let other = try FaultyOrigin(["/photos/a": .echo], address: "127.0.0.2")
        let store = try FaultyOrigin(["/photos/a": .redirect(to: other.url("/photos/a").absoluteString, status: 307)])
        let key = AWSSigningKey(
            accessKey: "AKTEST",
            secretKey: "s3cret",
            sessionToken: "t0ken",
            region: "us-east-1",
            service: "s3"
        )
        let fetcher = S3Fetcher(endpoint: try S3Endpoint(url: store.url("")), key: key, fetcher: DownloadActor())
        let blocked = try await fetcher.error(at: "s3://photos/a")
        #expect(blocked.code == .portNotAllowed)
        let response = try await fetcher.response(at: "s3://photos/a") { $0.networkPolicy = .unrestricted }
        let echo = String(decoding: response.body, as: UTF8.self)
        #expect(["Authorization", "AKTEST", "s3cret", "t0ken", "X-Amz"].allSatisfy { !echo.contains($0) })
        let sent = try #require(store.requestHeads(for: "/photos/a").first)
        #expect(sent.contains("Credential=AKTEST/"))
        #expect(sent.contains("X-Amz-Security-Token: t0ken"))
        #expect(!sent.contains("s3cret"))
    }

    @Test func `a redirect within the store is signed again`() async throws {
        let store = try FaultyOrigin(["/photos/a": .redirect(to: "/photos/b"), "/photos/b": .echo])
        let fetcher = S3Fetcher(endpoint: try S3Endpoint(url: store.url("")), key: .test, fetcher: DownloadActor())
        let echo = String(decoding: try await fetcher.response(at: "s3://photos/a").body, as: UTF8.self)
        #expect(echo.contains("Credential=AKTEST/"))
    }

    @Test(arguments: [
        AWSSigningKey(accessKey: "A\r\nX: 1", secretKey: "s", region: "r", service: "s3"),
        AWSSigningKey(accessKey: "", secretKey: "s", region: "r", service: "s3"),
        AWSSigningKey(accessKey: "A", secretKey: "s\0", region: "r", service: "s3"),
        AWSSigningKey(accessKey: "A", secretKey: "s", sessionToken: "t\n", region: "r", service: "s3"),
        AWSSigningKey(accessKey: "A", secretKey: "s", region: "r:s3", service: "s3"),
        AWSSigningKey(accessKey: "A", secretKey: "s", region: "", service: "s3"),
        AWSSigningKey(
            accessKey: "A",
            secretKey: "s",
            region: String(repeating: "r", count: 65),
            service: "s3"
        ),
    ])
    func `a key that would break the request is refused`(key: AWSSigningKey) async throws {
        let store = try FaultyOrigin(["/photos/a": .echo])
        let fetcher = S3Fetcher(endpoint: try S3Endpoint(url: store.url("")), key: key, fetcher: DownloadActor())
        #expect(try await fetcher.error(at: "s3://photos/a").code == .invalidHeader)
        #expect(store.requestCount(for: "/photos/a") == 0)
    }

    @Test func `descriptions of keys, credentials and requests hide the secrets`() throws {
        let key = AWSSigningKey(
            accessKey: "AKTEST",
            secretKey: "s3cret",
            sessionToken: "t0ken",
            region: "us-east-1",
            service: "s3"
        )
        let fetcher = S3Fetcher(endpoint: try S3Endpoint(region: "us-east-1"), key: key, fetcher: DownloadActor())
        let url = try #require(URL(string: "s3://photos/a"))
        let request = try fetcher.webRequest(for: DownloadRequest(url: url))
        for text in [
            "\(key)", "\(Credentials.awsSignature(key))", "\(request)", String(reflecting: request), "\(fetcher)",
        ] {
            #expect(!text.contains("s3cret"))
            #expect(!text.contains("t0ken"))
        }
        #expect(Credentials.awsSignature(key) != .awsSignature(.test))
        #expect(Credentials.awsSignature(key) == .awsSignature(key))
    }
}
