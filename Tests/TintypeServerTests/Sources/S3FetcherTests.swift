// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Objects of a real store, which checks signatures with Amazon's own code.
@Suite(
    .enabled(if: S3Origin.isInstalled, "There is no S3 store (moto); run .ci/setup test, which needs a network once."),
    .waiting,
    .timeLimit(.minutes(5))
)
struct S3FetcherTests {
    @Test(arguments: [
        ("plain.jpg", "plain.jpg"), ("a%20b/c%20d.jpg", "a b/c d.jpg"), ("é/ü😀.jpg", "é/ü😀.jpg"),
        ("%C3%A9/%C3%BC%F0%9F%98%80.jpg", "é/ü😀.jpg"), ("%c3%a9/%c3%bc%f0%9f%98%80.jpg", "é/ü😀.jpg"),
        ("a+b.jpg", "a+b.jpg"), ("a%2Bb.jpg", "a+b.jpg"), ("100%25.jpg", "100%.jpg"),
        ("a%2520b.jpg", "a%20b.jpg"), ("q%3Fx=1&y%23z.jpg", "q?x=1&y#z.jpg"),
        ("~!$&'()*,;=:@.jpg", "~!$&'()*,;=:@.jpg"), ("%7e!$&%27()*,;=:%40.jpg", "~!$&'()*,;=:@.jpg"),
        ("/leading.jpg", "/leading.jpg"), ("a//b.jpg", "a//b.jpg"), ("a%2F%2fb.jpg", "a//b.jpg"),
        ("tail/", "tail/"),
        ("%252e%252e.jpg", "%2e%2e.jpg"),
    ])
    func `an object is fetched, whatever its key`(path: String, key: String) async throws {
        let fetcher = try await S3Origin.shared.value.fetcher()
        let response = try await fetcher.response(at: "s3://photos/\(path)")
        #expect(String(decoding: response.body, as: UTF8.self) == "body of \(key)")
        #expect(response.status == 200)
        #expect(response.headers["ETag"] != nil)
        #expect(response.headers["Cache-Control"] == "max-age=60")
    }

    @Test func `the bucket can be the first label of the host`() async throws {
        let fetcher = try await S3Origin.shared.value.fetcher(host: "s3.localhost", style: .host)
        let response = try await fetcher.response(at: "s3://photos/a%20b/c%20d.jpg")
        #expect(String(decoding: response.body, as: UTF8.self) == "body of a b/c d.jpg")
        let origin = try await S3Origin.shared.value
        #expect(try origin.requests(containing: "photos.s3.localhost").contains { $0.target == "/a%20b/c%20d.jpg" })
    }

    @Test func `a query names a version`() async throws {
        let origin = try await S3Origin.shared.value
        let fetcher = try origin.fetcher()
        #expect(try await fetcher.response(at: "s3://versions/v.jpg").body == Data("second".utf8))
        #expect(try await fetcher.response(at: "s3://versions/v.jpg?\(origin.version)").body == Data("first".utf8))
        #expect(try await fetcher.error(at: "s3://versions/v.jpg?00000000-0000-0000-0000-000000000000").status == 404)
    }

    @Test(arguments: ["photos/missing.jpg", "nowhere/plain.jpg"])
    func `a missing object or bucket has the status 404`(path: String) async throws {
        let error = try await S3Origin.shared.value.fetcher().error(at: "s3://\(path)")
        #expect(error.code == .badStatus)
        #expect(error.status == 404)
    }

    @Test func `a wrong key has the status 403, and no error shows a secret`() async throws {
        let origin = try await S3Origin.shared.value
        let keys = [
            AWSSigningKey(accessKey: "AKTEST", secretKey: "wr0ngsecret", region: "us-east-1", service: "s3"),
            AWSSigningKey(accessKey: "NOBODY", secretKey: "wr0ngsecret", region: "us-east-1", service: "s3"),
            AWSSigningKey(
                accessKey: "AKSESSION",
                secretKey: "other-secret",
                sessionToken: "wr0ngsecret",
                region: "us-east-1",
                service: "s3"
            ),
        ]
        for key in keys {
            let error = try await origin.fetcher(key: key).error(at: "s3://photos/plain.jpg")
            #expect(error.status == 403)
            #expect(!"\(error) \(error.headers) \(String(describing: error.url))".contains("wr0ngsecret"))
        }
    }

    @Test func `without a key, only public objects are fetched`() async throws {
        let origin = try await S3Origin.shared.value
        let fetcher = try origin.fetcher(key: nil)
        #expect(try await fetcher.response(at: "s3://public/open.jpg").body == Data("open".utf8))
        #expect(try await fetcher.error(at: "s3://photos/plain.jpg").status == 403)
        #expect(try origin.requests(containing: "/public/open.jpg").last?.authorization == nil)
    }

    @Test func `a temporary key sends its token`() async throws {
        let origin = try await S3Origin.shared.value
        let key = AWSSigningKey(
            accessKey: "AKSESSION",
            secretKey: "other-secret",
            sessionToken: "session/token+==",
            region: "eu-central-1",
            service: "s3"
        )
        #expect(try await origin.fetcher(key: key).response(at: "s3://photos/plain.jpg").status == 200)
    }

    @Test func `an object over the limit is not read`() async throws {
        let fetcher = try await S3Origin.shared.value.fetcher()
        let error = try await fetcher.error(at: "s3://photos/large.jpg") { $0.maximumBodySize = 99_999 }
        #expect(error.code == .bodyTooLarge)
        let response = try await fetcher.response(at: "s3://photos/large.jpg") { $0.maximumBodySize = 100_000 }
        #expect(response.body.count == 100_000)
    }

    @Test func `a conditional request is signed and confirmed`() async throws {
        let fetcher = try await S3Origin.shared.value.fetcher()
        let tag = try #require(try await fetcher.response(at: "s3://photos/plain.jpg").headers["ETag"])
        let confirmed = try await fetcher.response(at: "s3://photos/plain.jpg") { request in
            request.headers = ["If-None-Match": tag]
            request.acceptableStatusCodes = StatusCodes.success.union(304)
        }
        #expect(confirmed.status == 304)
        #expect(confirmed.body.isEmpty)
    }

    @Test func `fields of the client do not reach the store`() async throws {
        let origin = try await S3Origin.shared.value
        let response = try await origin.fetcher().response(at: "s3://photos/tail/") { request in
            request.headers = [
                "Authorization": "Bearer forged", "Cookie": "a=forged", "X-Amz-Security-Token": "forged",
                "Accept-Language": "de", "Accept": "image/webp", "X-Forged": "1",
            ]
        }
        #expect(response.status == 200)
        let request = try #require(try origin.requests(containing: "/photos/tail/").last)
        #expect(request.authorization?.contains("Credential=AKTEST/") == true)
        #expect(request.cookie == nil)
        #expect(request.token == nil)
    }

    @Test func `the network policy lets only the endpoint be reached`() async throws {
        let origin = try await S3Origin.shared.value
        let target = try FaultyOrigin(["/photos/plain.jpg": .body([1])])
        #expect(try await DownloadActor.public.error(at: "http://127.0.0.1:\(origin.port)/").code == .portNotAllowed)
        let fetcher = try origin.fetcher()
        _ = try await fetcher.response(at: "s3://photos/plain.jpg")
        let other = try await DownloadActor.public.error(at: target.url("/photos/plain.jpg").absoluteString)
        #expect(other.code == .portNotAllowed)
    }
}
