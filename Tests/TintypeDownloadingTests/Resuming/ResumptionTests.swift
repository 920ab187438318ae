// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.waiting, .timeLimit(.minutes(5)))
struct ResumptionTests {
    private static let content = Array(pattern(22_789))
    private static let cut = 11_397
    private let folder: TemporaryDirectory
    private let origin: FaultyOrigin

    init() throws {
        self.folder = try TemporaryDirectory()
        self.origin = try FaultyOrigin()
    }

    private func downloader(attempts: Int = 1, keeps: Bool = true, maximumBytes: Int = 1 << 20) -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.retryPolicy = RetryPolicy(maximumAttempts: attempts)
        if keeps {
            configuration.partialBodies = DownloadActor.PartialBodies(
                directory: self.folder.path(of: "parts"),
                maximumBytes: maximumBytes
            )
        }
        return DownloadActor(
            configuration: configuration,
            environment: EngineEnvironment(random: { 0 }),
            loopDidEnd: nil
        )
    }

    /// Returns a response that breaks off after the first half.
    private static func firstHalf(
        _ validators: [(String, String)] = [("ETag", "\"v1\"")],
        ranges: String = "bytes"
    ) -> FaultyResponse {
        let fields = validators + [("Accept-Ranges", ranges), ("Content-Length", "\(content.count)")]
        return FaultyResponse([FaultyResponse.head(200, fields), .send(Array(content[..<self.cut])), .close])
    }

    private static func secondHalf(
        status: Int = 206,
        range: String? = nil,
        tag: String? = "\"v1\"",
        body: [UInt8]? = nil,
        fields: [(String, String)] = []
    ) -> FaultyResponse {
        let range = range ?? "bytes \(self.cut)-\(self.content.count - 1)/\(self.content.count)"
        let fields = (tag.map { [("ETag", $0)] } ?? []) + [("Content-Range", range)] + fields
        return .body(body ?? Array(self.content[self.cut...]), status: status, headers: fields)
    }

    private var request: DownloadRequest { DownloadRequest(url: self.origin.url("/a")) }

    /// Lets a transfer break off and stores its part, as another process would.
    private func breakOff() async throws {
        let downloader = self.downloader()
        #expect(try await downloader.error(for: self.request).code == .bodyCutShort)
        await downloader.flushPartialBodies()
    }

    @Test func `a retry asks for the rest only`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf(), Self.secondHalf()])
        let (progress, shown) = (Recorder<TransferProgress>(), Recorder<Data>())
        let response = try await self.downloader(attempts: 2, keeps: false).response(
            for: self.request,
            observer: { progress.record($0) },
            bytesObserver: { shown.record($0) }
        )
        #expect(response.body == Data(Self.content))
        #expect(shown.elements.reduce(Data(), +) == Data(Self.content))
        let second = self.origin.requestHeads(for: "/a").last ?? ""
        #expect(second.contains("Range: bytes=\(Self.cut)-\r\n"))
        #expect(second.contains("If-Range: \"v1\"\r\n"))
        let counts = progress.elements.map(\.receivedBytes)
        #expect(counts == counts.sorted())
        #expect(progress.elements.allSatisfy { $0.expectedBytes == Int64(Self.content.count) })
    }

    @Test func `another process goes on where one broke off`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf(), Self.secondHalf(), .body([1])])
        try await self.breakOff()
        let shown = Recorder<Data>()
        let downloader = self.downloader()
        let response = try await downloader.response(for: self.request, bytesObserver: { shown.record($0) })
        #expect(response.body == Data(Self.content))
        #expect(response.metrics.resumedBytes == Int64(Self.cut))
        #expect(shown.elements.reduce(Data(), +) == Data(Self.content))
        #expect(await downloader.counters.resumed == 1)
        // The store removes the part of a complete body.
        #expect(try await downloader.response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range:") == false)
    }

    @Test func `a cancelled transfer is gone on with`() async throws {
        let fields = [("ETag", "\"v1\""), ("Accept-Ranges", "bytes"), ("Content-Length", "\(Self.content.count)")]
        let half = FaultyResponse([
            FaultyResponse.head(200, fields), .send(Array(Self.content[..<Self.cut])), .stall,
        ])
        self.origin.script("/a", sequence: [half, Self.secondHalf()])
        let downloader = self.downloader()
        let arrived = Gate()
        let request = self.request
        let task = Task {
            try await downloader.response(for: request) { progress in
                if progress.receivedBytes == Self.cut { Task { await arrived.open() } }
            }
        }
        await arrived.wait()
        task.cancel()
        _ = await task.result
        #expect(try await downloader.response(for: self.request).body == Data(Self.content))
        #expect(self.origin.requestCount(for: "/a") == 2)
    }

    struct Answer: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: FaultyResponse
        let body: [UInt8]
    }

    @Test(arguments: [
        Answer(
            testDescription: "200, another version",
            response: .body([5, 6], headers: [("ETag", "\"v2\"")]),
            body: [5, 6]
        ),
        Answer(
            testDescription: "200, the same version",
            response: .body(content, headers: [("ETag", "\"v1\"")]),
            body: content
        ),
        Answer(testDescription: "another tag", response: secondHalf(tag: "\"v2\""), body: content),
        Answer(
            testDescription: "no tag",
            response: secondHalf(tag: nil, body: Array(foreign[cut...])),
            body: content
        ),
        Answer(
            testDescription: "the same tag, but weak",
            response: secondHalf(tag: "W/\"v1\"", body: Array(foreign[cut...])),
            body: content
        ),
        Answer(testDescription: "wrong start", response: secondHalf(range: "bytes 5-22788/22789"), body: content),
        Answer(testDescription: "wrong total", response: secondHalf(range: "bytes 11397-22788/30000"), body: content),
        Answer(testDescription: "unknown total", response: secondHalf(range: "bytes 11397-22788/*"), body: content),
        Answer(testDescription: "no range", response: .body([1, 2], status: 206), body: content),
        Answer(testDescription: "nonsense range", response: secondHalf(range: "bytes=1"), body: content),
        Answer(
            testDescription: "several parts",
            response: secondHalf(fields: [("Content-Type", "Multipart/ByteRanges; boundary=a")]),
            body: content
        ),
        Answer(
            testDescription: "compressed",
            response: .body(
                [1],
                status: 206,
                headers: [
                    ("Content-Range", "bytes 11397-22788/22789"), ("Content-Encoding", "gzip"),
                ]
            ),
            body: content
        ),
        Answer(
            testDescription: "a difference",
            response: .either(
                part: Self.secondHalf(status: 226),
                whole: .body(content, headers: [("ETag", "\"v1\"")])
            ),
            body: content
        ),
        Answer(
            testDescription: "416",
            response: .body([1], status: 416, headers: [("Content-Range", "bytes */22789")]),
            body: content
        ),
    ])
    func `a second half that does not fit is never joined to the first`(answer: Answer) async throws {
        self.origin.script("/a", .body(Self.content, headers: [("ETag", "\"v1\"")]))
        self.origin.script("/a", sequence: [Self.firstHalf(), answer.response])
        try await self.breakOff()
        #expect(try await self.downloader().response(for: self.request).body == Data(answer.body))
    }

    // MARK: Origins of the halves

    /// Returns the second half for a range request, and another whole body for any other request.
    private static func either(_ whole: [UInt8]) -> FaultyResponse {
        .either(
            part: self.secondHalf(body: Array(whole[self.cut...])),
            whole: .body(whole, headers: [("ETag", "\"v1\"")])
        )
    }

    private static let foreign = content.map { ~$0 }

    struct Ways: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Whether the first half comes after a redirect to another origin.
        let isFirstRedirected: Bool
        let isSecondRedirected: Bool
        let isInMemory: Bool
    }

    @Test(
        arguments: [false, true].flatMap { isInMemory in
            [(false, true), (true, false)].map {
                Ways(
                    testDescription: "\($0.0 ? "redirected" : "direct"), then \($0.1 ? "redirected" : "direct"), "
                        + (isInMemory ? "one transfer" : "two processes"),
                    isFirstRedirected: $0.0,
                    isSecondRedirected: $0.1,
                    isInMemory: isInMemory
                )
            }
        }
    )
    func `a second half from another address is never joined to the first`(ways: Ways) async throws {
        let other = try FaultyOrigin()
        let redirect = FaultyResponse.redirect(to: other.url("/b").absoluteString)
        if ways.isFirstRedirected {
            other.script("/b", sequence: [Self.firstHalf()])
            self.origin.script("/a", sequence: [redirect])
            self.origin.script("/a", Self.either(Self.foreign))
        } else {
            self.origin.script("/a", sequence: [Self.firstHalf()])
            self.origin.script("/a", redirect)
            other.script("/b", Self.either(Self.foreign))
        }
        let body: Data
        if ways.isInMemory {
            body = try await self.downloader(attempts: 2, keeps: false).response(for: self.request).body
        } else {
            try await self.breakOff()
            body = try await self.downloader().response(for: self.request).body
        }
        #expect(body == Data(Self.foreign))
        // The other address must not see the entity tag either.
        let last = (ways.isSecondRedirected ? other.requestHeads(for: "/b") : self.origin.requestHeads(for: "/a")).last
        #expect(last?.contains("Range:") == false)
    }

    @Test func `another path of the same origin is another address as well`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf()])
        self.origin.script("/a", .redirect(to: "/b"))
        self.origin.script("/b", Self.either(Self.foreign))
        try await self.breakOff()
        #expect(try await self.downloader().response(for: self.request).body == Data(Self.foreign))
    }

    @Test(arguments: [true, false])
    func `a redirect to the same address goes on`(isInMemory: Bool) async throws {
        let other = try FaultyOrigin()
        self.origin.script("/a", .redirect(to: other.url("/b").absoluteString))
        other.script("/b", sequence: [Self.firstHalf(), Self.secondHalf()])
        if !isInMemory { try await self.breakOff() }
        let downloader = self.downloader(attempts: isInMemory ? 2 : 1, keeps: !isInMemory)
        let response = try await downloader.response(for: self.request)
        #expect(response.body == Data(Self.content))
        #expect(response.metrics.resumedBytes == Int64(Self.cut))
        #expect(other.requestHeads(for: "/b").last?.contains("If-Range: \"v1\"") == true)
        #expect(self.origin.requestHeads(for: "/a").allSatisfy { !$0.contains("Range:") })
    }

    @Test func `a part that was not asked for is refused, whatever is kept`() async throws {
        let other = try FaultyOrigin(["/b": Self.secondHalf(body: Array(Self.foreign[Self.cut...]))])
        self.origin.script("/a", sequence: [Self.firstHalf()])
        self.origin.script("/a", .redirect(to: other.url("/b").absoluteString))
        try await self.breakOff()
        #expect(try await self.downloader().error(for: self.request).code == .invalidResponse)
    }

    @Test(arguments: [true, false])
    func `what was resumed has the status and the fields of the whole`(isInMemory: Bool) async throws {
        let fields = [
            ("ETag", "\"v1\""), ("Content-Type", "image/png"), ("Cache-Control", "max-age=1"), ("X-First", "1"),
            ("Set-Cookie", "a=1"), ("Age", "7"),
        ]
        // The response to If-Range need not repeat the fields of the whole (RFC 9110, 15.3.7).
        let rest = [("Cache-Control", "max-age=60"), ("X-Second", "2")]
        self.origin.script("/a", sequence: [Self.firstHalf(fields), Self.secondHalf(fields: rest)])
        if !isInMemory { try await self.breakOff() }
        var request = self.request
        request.acceptableContentTypes = ["image/*"]
        let downloader = self.downloader(attempts: isInMemory ? 2 : 1, keeps: !isInMemory)
        let response = try await downloader.response(for: isInMemory ? request : self.request)
        #expect(response.body == Data(Self.content))
        #expect(response.status == 200)
        #expect(response.headers.values(for: "Content-Length") == ["\(Self.content.count)"])
        #expect(response.headers["Content-Range"] == nil)
        #expect(response.headers["Content-Type"] == "image/png")
        #expect(response.headers.values(for: "Cache-Control") == ["max-age=60"])
        #expect(response.headers["X-First"] == "1")
        #expect(response.headers["X-Second"] == "2")
        #expect(response.headers["Set-Cookie"] == nil)
        #expect(response.headers["Age"] == nil)
    }

    @Test func `a second coding in a field of its own is seen`() async throws {
        let fields = [("ETag", "\"v1\""), ("Content-Encoding", "identity"), ("Content-Encoding", "gzip")]
        self.origin.script("/a", sequence: [Self.firstHalf(fields)])
        self.origin.script("/a", .body([1]))
        let downloader = self.downloader()
        _ = try await downloader.error(for: self.request)
        await downloader.flushPartialBodies()
        #expect(try await self.downloader().response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range:") == false)
    }

    @Test func `a tag with bytes that are no text tells no versions apart`() async throws {
        let head = Array("HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nContent-Length: \(Self.content.count)\r\n".utf8)
        let tag = Array("ETag: \"".utf8) + [0xE9] + Array("\"\r\n\r\n".utf8)
        let half = FaultyResponse([.send(head + tag + Self.content[..<Self.cut]), .close])
        self.origin.script("/a", sequence: [half])
        self.origin.script("/a", .body([1]))
        try await self.breakOff()
        #expect(try await self.downloader().response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range:") == false)
    }

    @Test func `a second half that is too short is an error, and is gone on with`() async throws {
        let middle = 15_196
        let part = FaultyResponse.body(
            Array(Self.content[Self.cut..<middle]),
            status: 206,
            headers: [("ETag", "\"v1\""), ("Content-Range", "bytes \(Self.cut)-\(middle - 1)/\(Self.content.count)")]
        )
        let rest = FaultyResponse.body(
            Array(Self.content[middle...]),
            status: 206,
            headers: [
                ("ETag", "\"v1\""),
                ("Content-Range", "bytes \(middle)-\(Self.content.count - 1)/\(Self.content.count)"),
            ]
        )
        self.origin.script("/a", sequence: [Self.firstHalf(), part, rest])
        try await self.breakOff()
        let downloader = self.downloader()
        #expect(try await downloader.error(for: self.request).code == .bodyCutShort)
        #expect(try await downloader.response(for: self.request).body == Data(Self.content))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range: bytes=\(middle)-") == true)
    }

    @Test(arguments: [
        firstHalf([("ETag", "W/\"v1\"")]), firstHalf([]), firstHalf(ranges: "none"),
        firstHalf([("ETag", "\"v1\""), ("Cache-Control", "private, no-store")]),
        firstHalf([
            ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Date", "Sun, 06 Nov 1994 08:49:40 GMT"),
        ]),
    ])
    func `what cannot be told apart for sure is asked for anew`(half: FaultyResponse) async throws {
        self.origin.script("/a", sequence: [half])
        self.origin.script("/a", .body([1]))
        try await self.breakOff()
        #expect(try await self.downloader().response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range:") == false)
    }

    @Test func `a date of modification long before the response is sure enough`() async throws {
        let dates = [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Date", "Sun, 06 Nov 1994 09:49:37 GMT")]
        self.origin.script("/a", sequence: [Self.firstHalf(dates), Self.secondHalf(tag: nil, fields: [dates[0]])])
        try await self.breakOff()
        #expect(try await self.downloader().response(for: self.request).body == Data(Self.content))
        let head = self.origin.requestHeads(for: "/a").last ?? ""
        #expect(head.contains("If-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))
    }

    @Test func `other credentials never get what is kept`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf()])
        self.origin.script("/a", .body([1]))
        try await self.breakOff()
        var other = self.request
        other.headers["Authorization"] = "Bearer other"
        #expect(try await self.downloader().response(for: other).body == Data([1]))
        var basic = self.request
        basic.credentials = .basic(user: "a", password: "b")
        #expect(try await self.downloader().response(for: basic).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").dropFirst().allSatisfy { !$0.contains("Range:") })
    }

    @Test func `what a jar or other defaults may select never gets what is kept`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf()])
        self.origin.script("/a", .body([1]))
        try await self.breakOff()
        var other = self.request
        other.cookies = .jar(CookieJar())
        #expect(try await self.downloader().response(for: other).body == Data([1]))
        var configuration = DownloadActor.Configuration()
        configuration.partialBodies = DownloadActor.PartialBodies(directory: self.folder.path(of: "parts"))
        configuration.acceptHeader = "image/webp"
        let downloader = DownloadActor(configuration: configuration)
        #expect(try await downloader.response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").dropFirst().allSatisfy { !$0.contains("Range:") })
    }

    @Test func `a request that accepts no part asks for none`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf(), .body([1])])
        try await self.breakOff()
        var request = self.request
        request.acceptableStatusCodes = [200]
        #expect(try await self.downloader().response(for: request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").allSatisfy { !$0.contains("Range:") })
    }

    @Test func `a caller that joins is shown nothing of what may be another version`() async throws {
        let door = Latch()
        let other = FaultyResponse([.wait(door), FaultyResponse.head(200, [("Content-Length", "1")]), .send([1])])
        self.origin.script("/a", sequence: [Self.firstHalf(), other])
        try await self.breakOff()
        let (downloader, request, origin) = (self.downloader(), self.request, self.origin)
        let first = Task { try await downloader.response(for: request) }
        await until { origin.requestHeads(for: "/a").count == 2 }
        let progress = Recorder<TransferProgress>()
        let shown = Recorder<Data>()
        let second = Task {
            try await downloader.response(
                for: request,
                observer: { progress.record($0) },
                bytesObserver: { shown.record($0) }
            )
        }
        while await downloader.counters.shared == 0 { await Task.yield() }
        door.open()
        _ = try await (first.value, second.value)
        #expect(progress.elements == [TransferProgress(receivedBytes: 1, expectedBytes: 1)])
        #expect(shown.elements == [Data([1])])
    }

    @Test(arguments: [
        Answer(testDescription: "204", response: FaultyResponse([FaultyResponse.head(204)]), body: content),
        Answer(testDescription: "an empty 200", response: .empty, body: content),
        Answer(
            testDescription: "an unasked 304",
            response: FaultyResponse([FaultyResponse.head(304, [("ETag", "\"v1\"")])]),
            body: content
        ),
        Answer(testDescription: "501", response: .body([1], status: 501), body: content),
        Answer(testDescription: "no HTTP", response: .garbage, body: content),
        Answer(testDescription: "an empty part", response: secondHalf(body: []), body: content),
        Answer(testDescription: "a part too long", response: secondHalf(body: content), body: content),
        Answer(
            testDescription: "a part too long, of no declared length",
            response: FaultyResponse([
                FaultyResponse.head(
                    206,
                    [("ETag", "\"v1\""), ("Content-Range", "bytes 11397-22788/22789"), ("Connection", "close")]
                ), .send(content), .close,
            ]),
            body: content
        ),
        Answer(
            testDescription: "a huge part",
            response: FaultyResponse([
                FaultyResponse.head(
                    206,
                    [
                        ("ETag", "\"v1\""), ("Content-Range", "bytes 11397-22788/22789"),
                        ("Content-Length", "\(Int64.max)"),
                    ]
                ), .stall,
            ]),
            body: content
        ),
    ])
    func `nonsense where the rest is asked for costs no load`(answer: Answer) async throws {
        self.origin.script("/a", .either(part: answer.response, whole: .body(Self.content)))
        self.origin.script("/a", sequence: [Self.firstHalf()])
        try await self.breakOff()
        let downloader = self.downloader()
        var request = self.request
        request.acceptableStatusCodes = answer.testDescription == "an unasked 304" ? [200, 206, 304] : nil
        #expect(try await downloader.response(for: request).body == Data(answer.body))
        #expect(self.origin.requestHeads(for: "/a").map { $0.contains("Range:") } == [false, true, false])
        await until { downloader.loop.engine.partials.store?.isEmpty != false }
        #expect(try await downloader.response(for: self.request).body == Data(answer.body))
        #expect(self.origin.requestCount(for: "/a") == 4)
    }

    @Test func `a status that may pass costs one load`() async throws {
        self.origin.script("/a", .either(part: .body([1], status: 503), whole: .body(Self.content)))
        self.origin.script("/a", sequence: [Self.firstHalf()])
        try await self.breakOff()
        let downloader = self.downloader()
        #expect(try await downloader.error(for: self.request).status == 503)
        await until { downloader.loop.engine.partials.store?.isEmpty != false }
        #expect(try await downloader.response(for: self.request).body == Data(Self.content))
    }

    @Test func `what is kept is forgotten where the rest is refused`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf(), .body([1], status: 400), .body([1])])
        try await self.breakOff()
        let downloader = self.downloader()
        #expect(try await downloader.error(for: self.request).status == 400)
        // The store removes the part in a job of its own.
        await until { downloader.loop.engine.partials.store?.isEmpty != false }
        #expect(try await downloader.response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range:") == false)
    }

    @Test func `a damaged file is not used`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf()])
        self.origin.script("/a", .body([1]))
        try await self.breakOff()
        let path = URL(filePath: try self.keptFile())
        var file = try Data(contentsOf: path)
        file[file.count - 1] ^= 1
        try file.write(to: path)
        #expect(try await self.downloader().response(for: self.request).body == Data([1]))
    }

    @Test(arguments: [mode_t(0o620), 0o602, 0o666])
    func `a file that others may write is not used`(mode: mode_t) async throws {
        self.origin.script("/a", sequence: [Self.firstHalf()])
        self.origin.script("/a", .body([1], headers: [("ETag", "\"v1\"")]))
        try await self.breakOff()
        let file = try self.keptFile()
        #expect(chmod(file, mode) == 0)
        #expect(try await self.downloader().response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range:") == false)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func `a file of another user is not used`() async throws {
        self.origin.script("/a", sequence: [Self.firstHalf()])
        self.origin.script("/a", .body([1], headers: [("ETag", "\"v1\"")]))
        try await self.breakOff()
        #expect(chown(try self.keptFile(), 65_534, 65_534) == 0)
        #expect(try await self.downloader().response(for: self.request).body == Data([1]))
        #expect(self.origin.requestHeads(for: "/a").last?.contains("Range:") == false)
    }

    private func keptFile() throws -> String {
        let parts = self.folder.path(of: "parts")
        return "\(parts)/\(try #require(try FileManager.default.contentsOfDirectory(atPath: parts).first))"
    }

    @Test func `the folder keeps to its limit and is private`() async throws {
        let downloader = self.downloader(maximumBytes: 30_000)
        for number in 0..<4 {
            self.origin.script("/\(number)", Self.firstHalf())
            _ = try await downloader.error(at: self.origin.url("/\(number)"))
            await downloader.flushPartialBodies()
        }
        let parts = self.folder.path(of: "parts")
        let names = try FileManager.default.contentsOfDirectory(atPath: parts)
        #expect(names.count == 2)
        let mode = try FileManager.default.attributesOfItem(atPath: "\(parts)/\(names[0])")[.posixPermissions] as? Int
        #expect(mode.map { $0 & 0o077 } == 0)
    }

    @Test func `cleaning removes no file of another program`() async throws {
        let parts = URL(filePath: self.folder.path(of: "parts"))
        try FileManager.default.createDirectory(at: parts, withIntermediateDirectories: true)
        let key = String(repeating: "0a", count: 32)
        let ours = Data("TTPART2\n and more".utf8)
        let foreign = Data("mine".utf8)
        let kept = [
            (key, foreign), ("\(key).jpg", ours), ("\(key)0", ours), (key.uppercased(), ours), (".\(key)", ours),
            (".\(key).x", ours), (".\(key).1.jpg", ours), (".\(key).+1", ours), (".\(key).7", foreign),
            (String(repeating: ".", count: 64), ours), ("..\(key).1", ours), ("notes", ours),
        ]
        let removed = [
            (String(repeating: "1b", count: 32), ours), (".\(key).1", ours), (".\(key).2", Data("TTP".utf8)),
        ]
        for (name, content) in kept + removed {
            let file = parts.appending(path: name)
            try content.write(to: file)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 0)],
                ofItemAtPath: file.path
            )
        }
        self.origin.script("/a", sequence: [Self.firstHalf(), Self.secondHalf()])
        try await self.breakOff()
        #expect(try await self.downloader().response(for: self.request).body == Data(Self.content))
        let names = Set(try FileManager.default.contentsOfDirectory(atPath: parts.path))
        #expect(names.isSuperset(of: kept.map(\.0)))
        #expect(names.isDisjoint(with: removed.map(\.0)))
    }

    @Test func `an unasked part is an error`() async throws {
        self.origin.script("/a", sequence: [Self.secondHalf(), Self.secondHalf(status: 226)])
        self.origin.script("/a", Self.secondHalf())
        #expect(try await self.downloader().error(for: self.request).code == .invalidResponse)
        #expect(try await self.downloader().error(for: self.request).code == .invalidResponse)
        var ranged = self.request
        ranged.headers["Range"] = "bytes=11397-"
        #expect(try await self.downloader().response(for: ranged).status == 206)
    }
}

extension FaultyResponse {
    /// Returns `part` for a range request, and `whole` for any other request.
    static func either(part: FaultyResponse, whole: FaultyResponse) -> FaultyResponse {
        FaultyResponse([.answer { String(decoding: $0, as: UTF8.self).contains("Range:") ? part : whole }])
    }
}
