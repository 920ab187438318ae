// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct StreamingTests {
    private let downloader = DownloadActor.patient()

    @Test(arguments: [false, true])
    func `a stream brings the whole body`(overTLS: Bool) async throws {
        let content = pattern(3_000_000)
        let origin = try NginxOrigin(files: ["a": content], servesTLS: overTLS)
        var request = DownloadRequest(url: overTLS ? origin.tlsURL("/a") : origin.url("/a"))
        request.allowsInvalidCertificates = true
        let stream = try await self.downloader.stream(for: request, bufferSize: 64 << 10)
        #expect(stream.head.status == 200)
        #expect(stream.head.expectedBytes == 3_000_000)
        var received = Data()
        for try await chunk in stream { received.append(chunk) }
        #expect(received == content)
    }

    @Test func `a reader that lags makes the server wait, and is not timed out`() async throws {
        // The content is larger than the buffers of both kernels.
        let content = [UInt8](pattern(24 << 20))
        let sent = Latch()
        let origin = try FaultyOrigin([
            "/a": FaultyResponse([
                FaultyResponse.head(200, [("Content-Length", "\(content.count)")]), .send(content), .signal(sent),
            ])
        ])
        var request = DownloadRequest(url: origin.url("/a"))
        request.timeout = .seconds(3)
        let stream = try await self.downloader.stream(for: request, bufferSize: 64 << 10)
        var iterator = stream.makeAsyncIterator()
        let first = try #require(try await iterator.next())
        // Meanwhile the loop serves other transfers for longer than the timeout.
        let start = ContinuousClock.now
        let other = try FaultyOrigin(["/b": .body([1])])
        while .now - start < .milliseconds(3_300) { _ = try await self.downloader.body(at: other.url("/b")) }
        #expect(!sent.isOpen)
        var count = first.count
        while let chunk = try await iterator.next() { count += chunk.count }
        #expect(count == content.count)
    }

    @Test func `a stream that is not read closes its connection`() async throws {
        let origin = try FaultyOrigin(["/a": .stall(declaredLength: 100, after: [1])])
        do {
            // A busy machine may leave the scope late, but not so late.
            let request = DownloadRequest(url: origin.url("/a"), timeout: .seconds(55))
            _ = try await self.downloader.stream(for: request)
        }
        await origin.waitForDisconnect(from: "/a")
        #expect(await self.downloader.counters.cancelled == 1)
    }

    @Test func `cancelling the reader ends the stream`() async throws {
        let origin = try FaultyOrigin(["/a": .stall(declaredLength: 100, after: [1])])
        let downloader = self.downloader
        let task = Task {
            var count = 0
            for try await chunk in try await downloader.stream(for: DownloadRequest(url: origin.url("/a"))) {
                count += chunk.count
            }
            return count
        }
        await origin.waitForRequests(for: "/a")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `a cut body ends the stream with an error, after its bytes`() async throws {
        let origin = try FaultyOrigin(["/a": .lying(declaredLength: 100, body: [1, 2, 3])])
        let stream = try await self.downloader.stream(for: DownloadRequest(url: origin.url("/a")))
        var received = Data()
        let error = await #expect(throws: DownloadError.self) {
            for try await chunk in stream { received.append(chunk) }
        }
        #expect(error?.code == .bodyCutShort)
        #expect(received == Data([1, 2, 3]))
    }

    @Test func `a bad status is an error before any stream`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1], status: 404)])
        let error = await #expect(throws: DownloadError.self) {
            try await self.downloader.stream(for: DownloadRequest(url: origin.url("/a")))
        }
        #expect(error?.code == .badStatus)
    }

    @Test func `a compressed stream that paused keeps to the limit of bodies`() async throws {
        let gzip = try #require(Data(base64Encoded: Self.gzippedZeros))
        let origin = try FaultyOrigin(["/a": .body(Array(gzip), headers: [("Content-Encoding", "gzip")])])
        var request = DownloadRequest(url: origin.url("/a"), timeout: .seconds(5))
        request.maximumBodySize = 60_000
        let stream = try await self.downloader.stream(for: request, bufferSize: 1)
        var count = 0
        let error = await #expect(throws: DownloadError.self) { for try await chunk in stream { count += chunk.count } }
        #expect(error?.code == .bodyTooLarge)
        #expect(count <= 60_000)
    }

    /// A gzip file that decodes to 300,000 zeros.
    static let gzippedZeros =
        "H4sIAAAAAAACA+3BAQ0AAADCoPdPbQ8HFAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        + "AAAAAAAAAAAAAAAAAAAA/Bj74rL24JMEAA=="

    @Test func `a stream keeps to the limit of bodies`() async throws {
        let origin = try FaultyOrigin(["/a": .undeclared(Array(pattern(100_000)))])
        var request = DownloadRequest(url: origin.url("/a"))
        request.maximumBodySize = 50_000
        let stream = try await self.downloader.stream(for: request)
        var count = 0
        let error = await #expect(throws: DownloadError.self) { for try await chunk in stream { count += chunk.count } }
        #expect(error?.code == .bodyTooLarge)
        #expect(count <= 50_000)
    }
}
