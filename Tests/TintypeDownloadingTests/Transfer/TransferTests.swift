// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct TransferTests {
    private let downloader = DownloadActor.patient()

    @Test(arguments: [1, 2_000, 50_000, 3_000_000])
    func `a body arrives whole`(count: Int) async throws {
        let content = pattern(count)
        let origin = try NginxOrigin(files: ["a.jpg": content])
        let response = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a.jpg")))
        #expect(response.body == content)
        #expect(response.status == 200)
        #expect(response.headers["content-TYPE"] == "image/jpeg")
        #expect(response.headers["ETag"] != nil)
        #expect(response.url == origin.url("/a.jpg"))
        #expect(response.metrics.bytes == Int64(count))
        #expect(response.metrics.httpVersion == .http1_1)
        #expect(response.metrics.total >= response.metrics.firstByte)
        #expect(response.metrics.total > .zero)
    }

    @Test(arguments: [
        FaultyResponse.chunked([Array(pattern(10)), Array(pattern(40_000)), [7]]),
        .undeclared(Array(pattern(10)) + Array(pattern(40_000)) + [7]),
    ])
    func `a body of unknown length arrives whole`(response: FaultyResponse) async throws {
        let origin = try FaultyOrigin(["/a": response])
        #expect(try await self.downloader.body(at: origin.url("/a")) == pattern(10) + pattern(40_000) + [7])
    }

    @Test func `what exceeds a declared length is not taken`() async throws {
        let origin = try FaultyOrigin(["/a": .lying(declaredLength: 3, body: [1, 2, 3, 4, 5])])
        #expect(try await self.downloader.body(at: origin.url("/a")) == Data([1, 2, 3]))
    }

    @Test func `requests one after the other use one connection`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])])
        let first = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a")))
        let second = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a")))
        #expect(!first.metrics.connectionReused)
        #expect(second.metrics.connectionReused)
        #expect(Set(try origin.requests().map(\.connection)).count == 1)
    }

    @Test func `a connection that the server closed is replaced`() async throws {
        let origin = try FaultyOrigin(["/a": .undeclared([1]), "/b": .body([2])])
        #expect(try await self.downloader.body(at: origin.url("/a")) == Data([1]))
        #expect(try await self.downloader.body(at: origin.url("/b")) == Data([2]))
    }

    @Test func `no more connections are opened to a host than allowed`() async throws {
        let door = Latch()
        var configuration = DownloadActor.Configuration()
        configuration.maximumConnectionsPerHost = 3
        let downloader = DownloadActor(configuration: configuration)
        let origin = try FaultyOrigin(["/a": .held(by: door, body: [1])])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<12 {
                group.addTask { _ = try await downloader.body(at: origin.url("/a?\(number)")) }
            }
            await origin.waitForRequests(3, for: "/a")
            await until { await downloader.counters.waiting >= 9 }
            #expect(await downloader.counters.active == 3)
            door.open()
            try await group.waitForAll()
        }
        #expect(origin.requestCount(for: "/a") == 12)
        #expect(origin.connectionCount == 3)
    }

    @Test func `a host that hangs does not hold up another`() async throws {
        let door = Latch()
        var configuration = DownloadActor.Configuration()
        configuration.maximumConnectionsPerHost = 2
        let downloader = DownloadActor(configuration: configuration)
        let slow = try FaultyOrigin(["/a": .held(by: door, body: [1])])
        let quick = try FaultyOrigin(["/a": .body([2])])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { _ = try await downloader.body(at: slow.url("/a?\(number)")) } }
            await slow.waitForRequests(2, for: "/a")
            for number in 0..<20 { #expect(try await downloader.body(at: quick.url("/a?\(number)")) == Data([2])) }
            door.open()
            try await group.waitForAll()
        }
        #expect(slow.requestCount(for: "/a") == 20)
    }

    @Test func `transfers over the total limit wait`() async throws {
        let door = Latch()
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = 1
        let downloader = DownloadActor(configuration: configuration)
        let origin = try FaultyOrigin(["/a": .held(by: door, body: [1]), "/b": .body([2])])
        async let first = downloader.body(at: origin.url("/a"))
        await origin.waitForRequests(for: "/a")
        async let second = downloader.body(at: origin.url("/b"))
        await until { await downloader.counters.waiting >= 1 }
        #expect(origin.requestCount(for: "/b") == 0)
        door.open()
        #expect(try await first == Data([1]))
        #expect(try await second == Data([2]))
    }

    @Test func `many transfers at once all arrive`() async throws {
        let content = pattern(20_000)
        let origin = try NginxOrigin(files: ["a": content])
        let downloader = self.downloader
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<500 {
                group.addTask { try await downloader.body(at: origin.url("/a?\(number)")) == content }
            }
            for try await isWhole in group { #expect(isWhole) }
        }
        let counters = await downloader.counters
        #expect(counters.started == 500)
        #expect(counters.succeeded == 500)
        #expect(counters.receivedBytes == 500 * 20_000)
        #expect(Set(try origin.requests().map(\.connection)).count <= 6)
    }

    @Test func `HTTP 2 carries many transfers over few connections`() async throws {
        let content = pattern(5_000)
        let origin = try NginxOrigin(files: ["a": content], servesTLS: true)
        let downloader = self.downloader
        try await withThrowingTaskGroup(of: ProtocolVersion?.self) { group in
            for number in 0..<100 {
                group.addTask {
                    var request = DownloadRequest(url: origin.tlsURL("/a?\(number)"))
                    request.allowsInvalidCertificates = true
                    let response = try await downloader.response(for: request)
                    #expect(response.body == content)
                    return response.metrics.httpVersion
                }
            }
            for try await version in group { #expect(version == .http2) }
        }
        let requests = try origin.requests()
        #expect(requests.allSatisfy { $0.version == "HTTP/2.0" })
        #expect(Set(requests.map(\.connection)).count <= 6)
    }

    @Test func `cancelling an HTTP 2 transfer leaves its connection to others`() async throws {
        let origin = try NginxOrigin(files: ["big": Data(count: 40_000_000), "a": Data([1])], servesTLS: true)
        let downloader = self.downloader
        let big = DownloadRequest(url: origin.tlsURL("/big"), allowsInvalidCertificates: true)
        let small = DownloadRequest(url: origin.tlsURL("/a"), allowsInvalidCertificates: true)
        var (cancelledCount, isReused) = (0, false)
        // If more of the cancelled body arrives while libcurl chooses a connection, it opens another one.
        for _ in 0..<5 where !isReused {
            let hasBegun = Gate()
            let task = Task {
                try await downloader.response(for: big) { _ in Task { await hasBegun.open() } }
            }
            await hasBegun.wait()
            task.cancel()
            // On a fast machine, the whole body may have arrived before.
            if await task.result.isCancellation { cancelledCount += 1 }
            let response = try await downloader.response(for: small)
            #expect(response.body == Data([1]))
            isReused = response.metrics.connectionReused
        }
        #expect(isReused)
        #expect(await downloader.counters.cancelled == cancelledCount)
    }

    @Test func `TLS is measured`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])], servesTLS: true)
        var request = DownloadRequest(url: origin.tlsURL("/a"))
        request.allowsInvalidCertificates = true
        let metrics = try await self.downloader.response(for: request).metrics
        #expect(metrics.tls > .zero)
        #expect(metrics.connect > .zero)
    }

    @Test func `a compressed body is inflated`() async throws {
        let gzip = try #require(Data(base64Encoded: gzippedText))
        let origin = try FaultyOrigin(["/a": .body(Array(gzip), headers: [("Content-Encoding", "gzip")])])
        let progress = Recorder<TransferProgress>()
        let response = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a"))) {
            progress.record($0)
        }
        #expect(response.body == Data(inflatedText.utf8))
        // The declared length is that of the compressed bytes.
        #expect(progress.elements.allSatisfy { $0.expectedBytes == nil })
    }
}

let inflatedText = Array(repeating: "tintype", count: 40).joined(separator: "\n")
let gzippedText = "H4sIAAAAAAACAyvJzCupLEjlKhmlyaEBOR+rOT8BAAA="
