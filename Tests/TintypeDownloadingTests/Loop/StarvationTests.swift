// SPDX-License-Identifier: Apache-2.0

import CTintypeShims
import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Checks that a peer that sends faster than the loop reads gets its share of turns and no more.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct StarvationTests {
    private static let content = Array(pattern(5_000))
    private static let chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let block = [UInt8](repeating: UInt8(ascii: "a"), count: 256 << 10)

    struct Flood: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: FaultyResponse
        var code = DownloadError.Code.invalidResponse

        init(_ name: String, _ start: String, _ block: [UInt8], code: DownloadError.Code = .invalidResponse) {
            self.testDescription = name
            self.response = FaultyResponse([.send(Array(start.utf8)), .flood(block)])
            self.code = code
        }
    }

    private static func lines(_ line: String) -> [UInt8] {
        Array(String(repeating: line, count: 4_000).utf8)
    }

    private static let floods = [
        Flood("a chunk extension without end", chunkedHead + "5;", block),
        Flood("chunks that are all extension", chunkedHead, lines("1;\(String(repeating: "b", count: 60))\r\nx\r\n")),
        Flood("an extension of the last chunk without end", chunkedHead + "1\r\na\r\n0;", block),
        Flood("a chunk size of zeros without end", chunkedHead, [UInt8](repeating: UInt8(ascii: "0"), count: 65_536)),
        Flood("a head without end", "HTTP/1.1 200 OK\r\n", lines("X-A: b\r\n")),
        Flood("one field without end", "HTTP/1.1 200 OK\r\nX-A: ", block),
        Flood("a status line without end", "HTTP/1.1 200 ", block),
        Flood("informational responses without end", "", lines("HTTP/1.1 103 Early Hints\r\n\r\n")),
        Flood("trailers without end", chunkedHead + "1\r\na\r\n0\r\n", lines("X-A: b\r\n")),
        Flood("a body without end", "HTTP/1.1 200 OK\r\n\r\n", block, code: .bodyTooLarge),
        Flood("an unwanted body without end", "HTTP/1.1 500 No\r\n\r\n", block, code: .badStatus),
        Flood(
            "a body of small chunks without end",
            chunkedHead,
            lines("8\r\nabcdefgh\r\n"),
            code: .bodyTooLarge
        ),
    ]

    @Test(arguments: floods, [false, true])
    func `a flood ends by its bytes`(flood: Flood, usesTLS: Bool) async throws {
        let origin = try FaultyOrigin(["/a": flood.response], usesTLS: usesTLS)
        var configuration = DownloadActor.Configuration()
        // Only the limits on bytes may end the flood.
        configuration.timeout = .seconds(600)
        configuration.firstByteTimeout = nil
        configuration.minimumSpeed = nil
        configuration.maximumBodySize = 4 << 20
        if let path = origin.authorityPath { configuration.tls.authorities = .file(path: path) }
        let error = try await DownloadActor(configuration: configuration).error(at: origin.url("/a"))
        #expect(error.code == flood.code, "\(error)")
        // Count the bytes that were read and the bytes in the socket buffers.
        #expect(origin.floodedBytes < 40 << 20)
    }

    /// Creates a downloader without a limit that could end a flood.
    private func boundless() -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .seconds(600)
        configuration.firstByteTimeout = nil
        configuration.minimumSpeed = nil
        configuration.maximumHeaderSize = .max
        return DownloadActor(configuration: configuration)
    }

    @Test func `others go on beside floods`() async throws {
        let flood = FaultyResponse([.send(Array((Self.chunkedHead + "5;").utf8)), .flood(Self.block)])
        let origin = try FaultyOrigin(["/flood": flood])
        let healthy = try FaultyOrigin(["/a": .body(Self.content), "/silence": .silence])
        let downloader = self.boundless()
        let floods = (0..<3).map { number in
            Task { try await downloader.body(at: origin.url("/flood?\(number)")) }
        }
        await origin.waitForRequests(3, for: "/flood")
        await until { origin.floodedBytes > 32 << 20 }
        // Other sockets, jobs and time limits have their turns.
        for number in 0..<20 {
            #expect(try await downloader.body(at: healthy.url("/a?\(number)")) == Data(Self.content))
        }
        let request = DownloadRequest(url: healthy.url("/silence"), timeout: .milliseconds(50))
        #expect(try await downloader.error(for: request).code == .timedOut)
        #expect(await downloader.counters.active == 3)
        for task in floods { task.cancel() }
        for task in floods { #expect(await task.result.isCancellation) }
    }

    // MARK: HTTP/2

    private static let settings = FaultyResponse.settingsFrame
    private static let okHead = FaultyResponse.headFrame()

    @Test func `an HTTP2 connection that has fallen silent is not used again`() async throws {
        let answer = Self.settings + Self.okHead + FaultyResponse.dataFrame([1, 2, 3], isLast: true)
        let origin = try FaultyOrigin(["*": FaultyResponse([.send(answer), .stall])], speaksHTTP2: true)
        origin.script("*", sequence: [FaultyResponse([.send(Self.settings), .stall])])
        var configuration = DownloadActor.Configuration()
        configuration.tls.authorities = .file(path: try #require(origin.authorityPath))
        let downloader = DownloadActor(configuration: configuration)
        let request = DownloadRequest(url: origin.url("/a"), timeout: .seconds(1))
        #expect(try await downloader.error(for: request).code == .timedOut)
        await origin.waitForDisconnect(from: "*")
        #expect(try await downloader.body(at: origin.url("/a")) == Data([1, 2, 3]))
    }

    struct Frames: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let start: [UInt8]
        let frame: [UInt8]

        init(_ name: String, after start: [UInt8] = StarvationTests.settings, _ frame: [UInt8]) {
            self.testDescription = name
            self.start = start
            self.frame = frame
        }
    }

    private static let frameFloods = [
        Frames("PING", FaultyResponse.frame(type: 6, [UInt8](repeating: 7, count: 8))),
        Frames("SETTINGS", settings),
        Frames("WINDOW_UPDATE", FaultyResponse.frame(type: 8, [0, 0, 0, 1])),
        Frames("an unknown type", FaultyResponse.frame(type: 200, [UInt8](repeating: 7, count: 100))),
        Frames("empty DATA", after: settings + okHead, FaultyResponse.frame(type: 0, stream: 1)),
        Frames("PRIORITY", FaultyResponse.frame(type: 2, stream: 1, [0, 0, 0, 0, 1])),
    ]

    @Test(arguments: frameFloods) func `a flood of frames without content ends by its bytes`(
        frames: Frames
    ) async throws {
        let block = (0..<2_000).flatMap { _ in frames.frame }
        let origin = try FaultyOrigin(["*": FaultyResponse([.send(frames.start), .flood(block)])], speaksHTTP2: true)
        var configuration = DownloadActor.Configuration()
        // Only the limits on bytes may end the flood.
        configuration.timeout = .seconds(600)
        configuration.firstByteTimeout = nil
        configuration.minimumSpeed = nil
        configuration.tls.authorities = .file(path: try #require(origin.authorityPath))
        let error = try await DownloadActor(configuration: configuration).error(at: origin.url("/a"))
        #expect([.invalidResponse, .connectionLost].contains(error.code), "\(error)")
        // Count the bytes that were read and the bytes in the socket buffers.
        #expect(origin.floodedBytes < 40 << 20)
    }

    // MARK: Turns

    @Test func `a transfer rests after its share of a turn and loses no byte`() async throws {
        let content = pattern(24_000_000)
        let origin = try NginxOrigin(files: ["a": content], servesTLS: true)
        let downloader = DownloadActor.patient()
        #expect(try await downloader.body(at: origin.url("/a")) == content)
        let request = DownloadRequest(url: origin.tlsURL("/a"), allowsInvalidCertificates: true)
        #expect(try await downloader.response(for: request).body == content)
        let chunked = try FaultyOrigin(["/a": .chunked((0..<200).map { _ in Self.block })])
        #expect(try await downloader.body(at: chunked.url("/a")).count == 200 * Self.block.count)
    }

    @Test func `sockets that cost little go first, and the dear one has its turn too`() throws {
        var pairs: [(near: CInt, far: CInt)] = []
        defer { for pair in pairs { for descriptor in [pair.near, pair.far] { close(descriptor) } } }
        let poll = try SocketPoll()
        for _ in 0..<8 {
            var pair: [CInt] = [0, 0]
            try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0)
            pairs.append((pair[0], pair[1]))
            poll.didOpen(pair[0])
            poll.want(CInt(CSHIMS_READABLE), of: pair[0])
            _ = write(pair[1], "a", 1)
        }
        let dear = pairs[0].near
        // A turn of no time serves one socket, and all sockets stay ready.
        var served: [CInt: Int] = [:]
        for _ in 0..<128 {
            _ = poll.wait(milliseconds: 0, turn: .zero) { descriptor, _ in
                served[descriptor, default: 0] += 1
                let end = ContinuousClock.now + .milliseconds(descriptor == dear ? 2 : 0)
                while .now < end {}
            }
        }
        #expect(served.values.reduce(0, +) == 128)
        // Serving the sockets in a fixed order would give each of them 16 turns.
        #expect((2...14).contains(served[dear, default: 0]))
        for pair in pairs { #expect(served[pair.near, default: 0] >= 2) }
    }
}
