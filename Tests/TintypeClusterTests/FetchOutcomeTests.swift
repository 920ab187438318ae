// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype

@testable import TintypeCluster

@Suite struct FetchOutcomeTests {
    private let url = URL(filePath: "/a.jpg")

    @Test(arguments: [[UInt8](), [1, 2, 3], Array(repeating: 7, count: 100_000)])
    func `a response is read back`(body: [UInt8]) throws {
        var headers = HeaderFields()
        headers.append("a", for: "Vary")
        headers.append("b", for: "Vary")
        let response = DownloadResponse(
            body: Data(body),
            url: self.url,
            status: 304,
            headers: headers,
            redirectCount: 2,
            requestTime: Date(timeIntervalSince1970: 1_000.25),
            responseTime: Date(timeIntervalSince1970: 1_001.5)
        )
        let encoded = try #require(FetchOutcome.response(response).encoded)
        let outcome = try #require(FetchOutcome(encoded: encoded))
        let read = try outcome.get()
        #expect(read.body == response.body && read.status == 304 && read.headers == headers && read.url == self.url)
        #expect(read.requestTime == response.requestTime && read.responseTime == response.responseTime)
        #expect(read.metrics.redirectCount == 2)
    }

    @Test func `a failure is read back`() throws {
        let error = DownloadError(
            code: .addressNotAllowed,
            message: "No.",
            url: self.url,
            status: 429,
            headers: ["Retry-After": "7"]
        )
        let encoded = try #require(FetchOutcome.failure(error).encoded)
        let outcome = try #require(FetchOutcome(encoded: encoded))
        let read = #expect(throws: DownloadError.self) { _ = try outcome.get() }
        #expect(read?.code == error.code && read?.message == "No." && read?.status == 429 && read?.url == self.url)
        #expect(read?.headers["Retry-After"] == "7")
    }

    @Test(arguments: [
        ("forged", 200), ("forged", 100), ("forged", 999), ("forged", 600), ("a\r\nb", 502), ("\u{e9}", 502),
    ])
    func `a failure with a status or a code that no failure has is no outcome`(code: String, status: Int) throws {
        let error = DownloadError(
            code: TintypeErrorCode(code, .origin, httpStatus: status),
            message: "No.",
            url: self.url
        )
        let encoded = try #require(FetchOutcome.failure(error).encoded)
        #expect(FetchOutcome(encoded: encoded) == nil)
    }

    @Test(arguments: [65, 3 << 20]) func `a failure with a long code is no outcome`(length: Int) throws {
        let code = TintypeErrorCode(String(repeating: "a", count: length), .origin, httpStatus: 502)
        let encoded = try #require(
            FetchOutcome.failure(DownloadError(code: code, message: "No.", url: self.url)).encoded
        )
        #expect(FetchOutcome(encoded: encoded) == nil)
    }

    @Test func `damaged bytes are no outcome`() throws {
        let response = DownloadResponse(body: Data(), url: self.url)
        let encoded = try #require(FetchOutcome.response(response).encoded)
        for count in 0..<encoded.count {
            #expect(FetchOutcome(encoded: encoded.prefix(count)) == nil, "\(count) bytes")
        }
        #expect(FetchOutcome(encoded: Data([255, 255, 255, 255]) + encoded) == nil)
    }
}
