// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

/// Checks that every fault leads to the right error or the right body.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct FaultTableTests {
    private static let content = Array(pattern(5_000))

    enum Ending: Sendable {
        case body([UInt8])
        case error(DownloadError.Code)
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: FaultyResponse
        let ending: Ending

        init(_ name: String, _ response: FaultyResponse, _ ending: Ending) {
            self.testDescription = name
            self.response = response
            self.ending = ending
        }
    }

    private static func raw(
        _ text: String,
        then body: [UInt8] = [],
        _ last: FaultyResponse.Step = .close
    ) -> FaultyResponse {
        FaultyResponse([.send(Array(text.utf8)), .send(body), last])
    }

    private static func chunked(_ text: String) -> FaultyResponse {
        self.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(text)")
    }

    private static func fields(_ count: Int, size: Int) -> [(String, String)] {
        (0..<count).map { ("X-\($0)", String(repeating: "a", count: size)) }
    }

    private static let gzipped = Array(Data(base64Encoded: gzippedText) ?? Data())
    private static let informational = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"

    private static let table: [Fault] = [
        Fault(
            "more bytes than declared",
            .lying(declaredLength: 4_000, body: content),
            .body(Array(content[..<4_000]))
        ),
        Fault("fewer bytes than declared", .lying(declaredLength: 5_001, body: content), .error(.bodyCutShort)),
        Fault(
            "a length below zero",
            raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", then: [1]),
            .error(.invalidResponse)
        ),
        Fault(
            "a length that is not a number",
            raw("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", then: [1]),
            .error(.invalidResponse)
        ),
        Fault(
            "a length over all bounds",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", then: [1]),
            .error(.bodyTooLarge)
        ),
        Fault(
            "two different lengths",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n", then: [1, 2, 3]),
            .error(.invalidResponse)
        ),
        Fault(
            "the same length twice",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n", then: [1, 2]),
            .body([1, 2])
        ),
        Fault("reset before the head", .reset, .error(.connectionLost)),
        Fault("reset inside the head", raw("HTTP/1.1 200 OK\r\nContent-Le", .reset), .error(.connectionLost)),
        Fault("closed inside the head", raw("HTTP/1.1 200 OK\r\nContent-Le"), .error(.connectionLost)),
        Fault(
            "reset inside the body",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", then: [1, 2], .reset),
            .error(.connectionLost)
        ),
        Fault("many header fields", .body([1], headers: fields(400, size: 1_000)), .error(.invalidResponse)),
        Fault("one long header field", .body([1], headers: fields(1, size: 300_000)), .error(.invalidResponse)),
        Fault("many small header fields", .body([1], headers: fields(200, size: 100)), .body([1])),
        Fault(
            "one informational response",
            raw(informational + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", then: [7]),
            .body([7])
        ),
        Fault(
            "a hundred informational responses",
            raw(
                String(repeating: informational, count: 100) + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n",
                then: [7]
            ),
            .body([7])
        ),
        Fault(
            "informational responses without end",
            raw(String(repeating: informational, count: 20_000)),
            .error(.invalidResponse)
        ),
        Fault(
            "trailers without end",
            chunked("1\r\na\r\n0\r\n" + fields(400, size: 1_000).map { "\($0): \($1)\r\n" }.joined()),
            .error(.invalidResponse)
        ),
        Fault(
            "a trailer",
            chunked("1\r\na\r\n0\r\nX-A: 1\r\n\r\n"),
            .body(Array("a".utf8))
        ),
        Fault("an informational response alone", raw(informational), .error(.connectionLost)),
        Fault(
            "a change of protocol that nobody requested",
            raw("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc"),
            .error(.invalidResponse)
        ),
        Fault("a chunk size that is not a number", chunked("zz\r\nabc\r\n0\r\n\r\n"), .error(.invalidResponse)),
        Fault(
            "a chunk size over all bounds",
            chunked("ffffffffffffffffff\r\nabc\r\n0\r\n\r\n"),
            .error(.invalidResponse)
        ),
        Fault("a chunk size below zero", chunked("-3\r\nabc\r\n0\r\n\r\n"), .error(.invalidResponse)),
        Fault("no line end after a chunk", chunked("3\r\nabcdef0\r\n\r\n"), .error(.invalidResponse)),
        Fault("a chunk cut short", chunked("ff\r\nabc"), .error(.bodyCutShort)),
        Fault("no last chunk", chunked("3\r\nabc\r\n"), .error(.bodyCutShort)),
        Fault(
            "chunks with extensions and trailers",
            chunked("3;a=b\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"),
            .body(Array("abc".utf8))
        ),
        Fault(
            "a trailer that looks like a head",
            chunked("3\r\nabc\r\n0\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
            .error(.invalidResponse)
        ),
        Fault("no HTTP at all", .garbage, .error(.invalidResponse)),
        Fault("a status that is not a number", raw("HTTP/1.1 abc OK\r\n\r\n", then: [1]), .error(.invalidResponse)),
        Fault(
            "an unasked part",
            .body([1], status: 206, headers: [("Content-Range", "bytes 5-5/9")]),
            .error(.invalidResponse)
        ),
        Fault(
            "a 200 with the fields of a part",
            .body([1, 2], headers: [("Content-Range", "bytes 5-6/9")]),
            .body([1, 2])
        ),
        Fault(
            "an unknown content coding",
            .body([1, 2], headers: [("Content-Encoding", "rot13")]),
            .body([1, 2])
        ),
        Fault(
            "a gzip body that ends inside of its header",
            .body([0x1F, 0x8B, 8, 0], headers: [("Content-Encoding", "gzip")]),
            .error(.bodyCutShort)
        ),
        Fault(
            "a gzip body that ends inside, in whole chunks",
            .chunked([gzipped[..<20].map(\.self)], headers: [("Content-Encoding", "gzip")]),
            .error(.bodyCutShort)
        ),
        Fault(
            "a gzip body with a wrong checksum",
            .body(gzipped.dropLast(8) + Array(repeating: 0, count: 8), headers: [("Content-Encoding", "gzip")]),
            .error(.invalidResponse)
        ),
        Fault(
            "a gzip body that was not coded",
            .body(Array("hello".utf8), headers: [("Content-Encoding", "gzip")]),
            .error(.invalidResponse)
        ),
        Fault(
            "a transfer coding that was not asked for",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", then: gzipped),
            .error(.invalidResponse)
        ),
        Fault(
            "more bytes than declared, under a coding that is none",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 3\r\n\r\n", then: [1, 2, 3, 4]),
            .error(.bodyCutShort)
        ),
        Fault(
            "fewer bytes than declared, under a coding that is none",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: identity\r\n\r\n", then: [1, 2, 3, 4]),
            .error(.bodyCutShort)
        ),
        Fault(
            "the declared bytes, under a coding that is none",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 4\r\n\r\n", then: [1, 2, 3, 4]),
            .body([1, 2, 3, 4])
        ),
        Fault(
            "chunks under a coding that is none",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n1\r\na\r\n"),
            .error(.bodyCutShort)
        ),
        Fault(
            "a length with a space before its colon",
            raw("HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\n", then: [1, 2, 3, 4]),
            .error(.invalidResponse)
        ),
        Fault(
            "chunks with a tab before their colon",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding\t: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"),
            .error(.invalidResponse)
        ),
        Fault("a field without a name", raw("HTTP/1.1 200 OK\r\n: 3\r\n\r\n", then: [1]), .error(.invalidResponse)),
        Fault("a redirect to a host that is not a name", .redirect(to: "http://a b/"), .error(.invalidResponse)),
        Fault("a redirect without end", .redirect(to: "/a"), .error(.tooManyRedirects)),
        Fault("silence", .silence, .error(.timedOut)),
        Fault("a stall", .stall(declaredLength: 9, after: [1]), .error(.timedOut)),
        Fault("a drip", .drip(Array(content[..<20]), size: 1, pauseMilliseconds: 5), .body(Array(content[..<20]))),
    ]

    @Test(arguments: table)
    func `each fault ends as it should`(fault: Fault) async throws {
        let origin = try FaultyOrigin(["/a": fault.response])
        // Use the short timeout only for faults that must time out.
        let timeout: Duration = if case .error(.timedOut) = fault.ending { .milliseconds(300) } else { .seconds(60) }
        let request = DownloadRequest(url: origin.url("/a"), timeout: timeout)
        switch fault.ending {
        case .body(let body):
            #expect(try await DownloadActor.patient().response(for: request).body == Data(body))
        case .error(let code):
            let error = try await DownloadActor.patient().error(for: request)
            #expect(error.code == code, "\(error)")
        }
    }

    // MARK: HTTP/2

    private static let settings = FaultyResponse.frame(type: 4)

    /// Returns a head with a literal status and a body of one byte.
    private static func answer(status: String) -> [UInt8] {
        let head = [0x08, UInt8(status.utf8.count)] + Array(status.utf8)
        return self.settings + FaultyResponse.frame(type: 1, flags: 4, stream: 1, head)
            + FaultyResponse.frame(type: 0, flags: 1, stream: 1, [1])
    }

    private static func frames(_ name: String, _ bytes: [UInt8], _ ending: Ending) -> Fault {
        Fault(name, FaultyResponse([.send(bytes), .stall]), ending)
    }

    private static let oversized = [UInt8](repeating: 0, count: 17_000)

    static let frameTable = [
        frames("a status of 299", answer(status: "299"), .body([1])),
        frames("a status of 000", answer(status: "000"), .error(.invalidResponse)),
        frames("a status of 099", answer(status: "099"), .error(.invalidResponse)),
        frames("a status of 101", answer(status: "101"), .error(.connectionLost)),
        frames("a status of 199", answer(status: "199"), .error(.connectionLost)),
        frames("a status of 20", answer(status: "20"), .error(.connectionLost)),
        frames("a status of 2000", answer(status: "2000"), .error(.connectionLost)),
        frames("a status of -99", answer(status: "-99"), .error(.connectionLost)),
        frames("a status of 999", answer(status: "999"), .error(.badStatus)),
        frames("no status", settings + FaultyResponse.frame(type: 1, flags: 5, stream: 1, []), .error(.connectionLost)),
        frames("settings over the size of a frame", FaultyResponse.frame(type: 4, oversized), .error(.connectionLost)),
        frames(
            "an unknown frame over the size of a frame",
            settings + FaultyResponse.frame(type: 200, oversized),
            .error(.connectionLost)
        ),
        frames(
            "a head over the size of a frame",
            settings + FaultyResponse.frame(type: 1, flags: 4, stream: 1, oversized),
            .error(.connectionLost)
        ),
        frames("no HTTP/2 at all", Array("HTTP/1.1 200 OK\r\n\r\n".utf8), .error(.connectionLost)),
    ]

    @Test(arguments: frameTable)
    func `each fault of frames ends as it should`(fault: Fault) async throws {
        let origin = try FaultyOrigin(["*": fault.response], speaksHTTP2: true)
        var configuration = DownloadActor.Configuration()
        configuration.tls.authorities = .file(path: try #require(origin.authorityPath))
        let downloader = DownloadActor(configuration: configuration)
        switch fault.ending {
        case .body(let body): #expect(try await downloader.body(at: origin.url("/a")) == Data(body))
        case .error(let code):
            let error = try await downloader.error(at: origin.url("/a"))
            #expect(error.code == code, "\(error)")
        }
    }

    /// Runs in a process of its own, whose memory no other test uses.
    @Test(.disabled(if: ThisProcess.isSanitized, "sanitizers take memory of their own"))
    func `a declared length costs nothing before its bytes come`() async {
        await #expect(processExitsWith: .success) {
            let declared = 60 << 20
            let origin = try FaultyOrigin(["/a": .stall(declaredLength: declared, after: [1])])
            var configuration = DownloadActor.Configuration()
            configuration.maximumConnectionsPerHost = 20
            let downloader = DownloadActor(configuration: configuration)
            let resident = ThisProcess.residentBytes
            let tasks = (0..<20).map { number in
                Task { try await downloader.response(for: DownloadRequest(url: origin.url("/a?\(number)"))) }
            }
            await until { await downloader.counters.receivedHeads >= 20 }
            let grown = ThisProcess.residentBytes - resident
            precondition(grown < declared, "20 declared lengths took \(grown) bytes")
            for task in tasks { task.cancel() }
            for task in tasks { _ = await task.result }
        }
    }

    // MARK: Limits on time

    private func code(
        _ response: FaultyResponse,
        _ change: (inout DownloadActor.Configuration) -> Void
    ) async throws
        -> DownloadError
    {
        let origin = try FaultyOrigin(["/a": response])
        var configuration = DownloadActor.Configuration()
        change(&configuration)
        return try await DownloadActor(configuration: configuration).error(at: origin.url("/a"))
    }

    @Test func `a head that is late is given up`() async throws {
        let error = try await self.code(.silence) { $0.firstByteTimeout = .milliseconds(100) }
        #expect(error.code == .timedOut)
        #expect(error.message.contains("the timeout of the first byte"))
    }

    @Test func `a body that takes too long is given up, though it goes on`() async throws {
        let drip = FaultyResponse.drip(Self.content, size: 1, pauseMilliseconds: 5)
        let error = try await self.code(drip) { $0.totalTimeout = .milliseconds(200) }
        #expect(error.code == .timedOut)
        #expect(error.message.contains("the total timeout"))
    }

    @Test func `a body that is too slow is given up, though it goes on`() async throws {
        let drip = FaultyResponse.drip(Self.content, size: 1, pauseMilliseconds: 5)
        let error = try await self.code(drip) {
            $0.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 100_000, period: .milliseconds(100))
        }
        #expect(error.code == .tooSlow)
    }

    @Test func `a body that is fast enough is not given up`() async throws {
        // The body takes longer than the period, and the period is longer than a busy machine stalls.
        let body = Array(Self.content[..<100])
        let origin = try FaultyOrigin(["/a": .drip(body, size: 1, pauseMilliseconds: 50)])
        var configuration = DownloadActor.Configuration()
        configuration.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 1, period: .seconds(4))
        let downloader = DownloadActor(configuration: configuration)
        #expect(try await downloader.body(at: origin.url("/a")) == Data(body))
    }
}
