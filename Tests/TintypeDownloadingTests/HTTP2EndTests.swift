// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

/// Ends of bodies over HTTP/2, for many of which libcurl 7.88 reports success although the body is not complete.
@Suite(.waiting, .timeLimit(.minutes(5))) struct HTTP2EndTests {
    private static let body = [UInt8](pattern(40_000))
    private static let half = Array(body[..<12_000])

    private static func downloader(_ origin: FaultyOrigin, attempts: Int = 1) throws -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.timeout = .seconds(60)
        configuration.firstByteTimeout = nil
        configuration.minimumSpeed = nil
        configuration.retryPolicy = RetryPolicy(maximumAttempts: attempts, initialDelay: .milliseconds(1))
        configuration.tls.authorities = .file(path: try #require(origin.authorityPath))
        return DownloadActor(configuration: configuration)
    }

    /// Returns an origin whose connections wait for a request, and send these frames and then `fault`.
    ///
    /// The fault has its own TLS record, because libcurl drops all data in the same record as a reset.
    private static func origin(
        _ frames: [UInt8],
        then fault: [UInt8] = [],
        http1: FaultyResponse? = nil
    ) throws -> FaultyOrigin {
        let script = FaultyResponse([
            .send(FaultyResponse.settingsFrame), .awaitStreams(1), .send(frames), .send(fault), .close,
        ])
        return try FaultyOrigin(["*": script, "/a": http1 ?? .reset], speaksHTTP2: true)
    }

    private static func frames(of body: [UInt8], stream: UInt8 = 1, isWhole: Bool) -> [UInt8] {
        stride(from: 0, to: body.count, by: 16_000).flatMap { start in
            let end = min(body.count, start + 16_000)
            return FaultyResponse.dataFrame(
                Array(body[start..<end]),
                stream: stream,
                isLast: isWhole && end == body.count
            )
        }
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let frames: [UInt8]
        /// The errors with which a load may fail if the fault follows the head at once.
        let codesBehindHead: [DownloadError.Code]

        init(
            _ name: String,
            _ frames: [UInt8],
            codesBehindHead: [DownloadError.Code] = [.bodyCutShort, .connectionLost]
        ) {
            self.testDescription = name
            self.frames = frames
            self.codesBehindHead = codesBehindHead
        }
    }

    /// The faults, for each of which libcurl 7.88 reported success, with and without a length.
    static let faults = [
        Fault("RST_STREAM without an error", FaultyResponse.resetFrame(code: 0)),
        Fault("RST_STREAM for HTTP/1.1", FaultyResponse.resetFrame(code: 13)),
        Fault("RST_STREAM with an error", FaultyResponse.resetFrame(code: 2)),
        Fault("DATA on stream 0", FaultyResponse.dataFrame([1], stream: 0)),
        Fault("HEADERS on stream 0", FaultyResponse.headFrame(stream: 0)),
        Fault("DATA on an idle stream", FaultyResponse.dataFrame([1], stream: 9)),
        Fault("a PING of 7 bytes", FaultyResponse.frame(type: 6, [UInt8](repeating: 0, count: 7))),
        Fault("SETTINGS on a stream", FaultyResponse.frame(type: 4, stream: 1)),
        Fault("CONTINUATION of nothing", FaultyResponse.frame(type: 9, flags: 4, stream: 1, [0x88])),
        Fault("WINDOW_UPDATE by nothing", FaultyResponse.frame(type: 8, [0, 0, 0, 0])),
        Fault("PUSH_PROMISE", FaultyResponse.frame(type: 5, flags: 4, stream: 1, [0, 0, 0, 2, 0x82, 0x87, 0x84])),
        Fault("DATA that is too large", FaultyResponse.frame(type: 0, flags: 1, stream: 1, Array(body[..<16_385]))),
        // Trailers end a stream even if nobody can read them, so the body is complete and empty.
        Fault(
            "trailers that cannot be read",
            FaultyResponse.frame(type: 1, flags: 5, stream: 1, [0x80]),
            codesBehindHead: [.emptyBody]
        ),
        Fault("trailers with a status", FaultyResponse.frame(type: 1, flags: 5, stream: 1, [0x88])),
    ]

    @Test(arguments: faults, [nil, body.count]) func `half a body never passes for the whole`(
        fault: Fault,
        length: Int?
    ) async throws {
        let frames = FaultyResponse.headFrame(length: length) + Self.frames(of: Self.half, isWhole: false)
        let origin = try Self.origin(frames, then: fault.frames)
        let error = try await Self.downloader(origin).error(at: origin.url("/a"))
        #expect([.bodyCutShort, .connectionLost].contains(error.code), "\(error)")
    }

    @Test(arguments: faults) func `a body that begins with a fault is cut short, and not empty`(
        fault: Fault
    ) async throws {
        let origin = try Self.origin(FaultyResponse.headFrame() + fault.frames)
        let error = try await Self.downloader(origin).error(at: origin.url("/a"))
        #expect(fault.codesBehindHead.contains(error.code), "\(error)")
    }

    @Test(arguments: [200, 421, 404]) func `a second response is never joined to the half of the first`(
        status: Int
    ) async throws {
        let frames = FaultyResponse.headFrame(length: Self.body.count) + Self.frames(of: Self.half, isWhole: false)
        let origin = try Self.origin(
            frames,
            then: FaultyResponse.resetFrame(code: 13),
            http1: .body(Array(Self.body[12_000...]), status: status)
        )
        let error = try await Self.downloader(origin, attempts: 2).error(at: origin.url("/a"))
        #expect(error.code == .bodyCutShort, "\(error)")
        #expect(error.status == 200)
        #expect(origin.requestCount(for: "*") == 2)
    }

    @Test func `a server that asks for HTTP 1 before it answers gets it`() async throws {
        let origin = try Self.origin(FaultyResponse.resetFrame(code: 13), http1: .body(Self.body))
        let response = try await Self.downloader(origin).response(for: DownloadRequest(url: origin.url("/a")))
        #expect(Array(response.body) == Self.body)
        #expect(response.metrics.httpVersion == .http1_1)
    }

    static let ends = [
        Fault("DATA", []),
        Fault("no DATA", FaultyResponse.dataFrame([], isLast: true)),
        Fault("padding", FaultyResponse.frame(type: 0, flags: 9, stream: 1, [2, 0, 0])),
        Fault("trailers", FaultyResponse.frame(type: 1, flags: 5, stream: 1, [0, 1, 120, 1, 121])),
        Fault(
            "DATA after GOAWAY",
            FaultyResponse.frame(type: 7, [0, 0, 0, 1, 0, 0, 0, 0]) + FaultyResponse.dataFrame([], isLast: true)
        ),
        Fault("RST_STREAM after DATA", FaultyResponse.dataFrame([], isLast: true) + FaultyResponse.resetFrame(code: 0)),
    ]

    @Test(arguments: ends, [nil, body.count]) func `a body that ends in order is whole at the first try`(
        end: Fault,
        length: Int?
    ) async throws {
        let frames = Self.frames(of: Self.body, isWhole: end.frames.isEmpty) + end.frames
        let origin = try Self.origin(FaultyResponse.headFrame(length: length) + frames)
        #expect(Array(try await Self.downloader(origin).body(at: origin.url("/a"))) == Self.body)
    }

    @Test(arguments: faults) func `honest neighbours are not cut with a connection, and come whole over another`(
        fault: Fault
    ) async throws {
        let halves = [UInt8(1), 3].flatMap { stream in
            FaultyResponse.headFrame(stream: stream) + Self.frames(of: Self.half, stream: stream, isWhole: false)
        }
        let whole = [UInt8(1), 3].map { stream in
            FaultyResponse.headFrame(stream: stream) + Self.frames(of: Self.body, stream: stream, isWhole: true)
        }
        let settings = FaultyResponse.Step.send(FaultyResponse.settingsFrame)
        let origin = try FaultyOrigin(
            [
                "*": FaultyResponse([settings] + whole.flatMap { [.awaitStreams(1), .send($0)] } + [.stall]),
                // One of the requests may use HTTP/1.1, and then the other reuses its connection.
                "/a": .body(Self.body),
            ],
            speaksHTTP2: true
        )
        // The origin never completes stream 3. After a reset of stream 1, stream 3 lasts until the connection ends.
        origin.script(
            "*",
            sequence: [FaultyResponse([settings, .awaitStreams(2), .send(halves + fault.frames), .close])]
        )
        let downloader = try Self.downloader(origin, attempts: 4)
        let (first, second) = (origin.url("/a?1"), origin.url("/a?2"))
        async let one = downloader.body(at: first)
        async let other = downloader.body(at: second)
        #expect(Array(try await one) == Self.body)
        #expect(Array(try await other) == Self.body)
    }

    @Test func `a stream ends with an error if its body was cut`() async throws {
        let frames = FaultyResponse.headFrame() + Self.frames(of: Self.half, isWhole: false)
        let origin = try Self.origin(frames, then: FaultyResponse.resetFrame(code: 0))
        let stream = try await Self.downloader(origin).stream(for: DownloadRequest(url: origin.url("/a")))
        var count = 0
        let error = await #expect(throws: DownloadError.self) { for try await chunk in stream { count += chunk.count } }
        #expect(count == Self.half.count)
        #expect(error?.code == .bodyCutShort)
    }

    @Test func `nginx needs no length over HTTP 2`() async throws {
        // nginx sends no length for a page with server-side includes.
        let files = ["a": pattern(1_000_000), "b": pattern(3)]
        let origin = try NginxOrigin(files: files, servesTLS: true, directives: "ssi on; ssi_types *;")
        let downloader = DownloadActor.patient()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<60 {
                let name = number.isMultiple(of: 3) ? "a" : "b"
                group.addTask {
                    let url = origin.tlsURL("/\(name)?\(number)")
                    let request = DownloadRequest(url: url, allowsInvalidCertificates: true)
                    let response = try await downloader.response(for: request)
                    #expect(response.headers["Content-Length"] == nil)
                    #expect(response.body == files[name])
                    #expect(response.metrics.httpVersion == .http2)
                    #expect(response.metrics.retryCount == 0)
                }
            }
            try await group.waitForAll()
        }
        #expect(Set(try origin.requests().map(\.connection)).count <= 6)
    }

    @Test func `bodies go both ways over HTTP 2 at once, and arrive whole`() async throws {
        let directives = "dav_methods PUT; client_max_body_size 0; client_body_temp_path temporary;"
        let origin = try NginxOrigin(files: ["a": pattern(1_000_000)], servesTLS: true, directives: directives)
        let downloader = DownloadActor.patient()
        @Sendable func response(at path: String, method: DownloadRequest.Method = .get) async throws -> DownloadResponse
        {
            let url = origin.tlsURL(path)
            let request = DownloadRequest(url: url, method: method, allowsInvalidCertificates: true)
            let response = try await downloader.response(for: request)
            #expect(response.metrics.httpVersion == .http2)
            return response
        }
        // More than the windows of a stream and a connection, so that each upload waits for frames of the server.
        let uploads = (0..<6).map { pattern(2_000_000 + $0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, upload) in uploads.enumerated() {
                group.addTask {
                    let status = try await response(at: "/new\(number)", method: .put(upload)).status
                    #expect(status == 201)
                }
                group.addTask {
                    let body = try await response(at: "/a?\(number)").body
                    #expect(body == pattern(1_000_000))
                }
            }
            try await group.waitForAll()
        }
        for (number, upload) in uploads.enumerated() {
            let body = try await response(at: "/new\(number)").body
            #expect(body == upload)
        }
    }
}
