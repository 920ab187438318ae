// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Bodies that a server compresses although the request does not allow it.
@Suite(.waiting, .timeLimit(.minutes(5)))
struct ContentCodingTests {
    private let downloader = DownloadActor.patient()

    struct Coded: Sendable, CustomTestStringConvertible {
        let coding: String
        let base64: String

        var testDescription: String { "\(self.coding), \(self.base64.utf8.count)" }
        var bytes: [UInt8] { Array(Data(base64Encoded: self.base64) ?? Data()) }

        /// Whether the build lacks a trait that one of the codings needs.
        var isMissing: Bool {
            guard case .known(let codings) = ContentCodings(["Content-Encoding": self.coding]) else { return false }
            return codings.contains { $0.missingTrait != nil }
        }
    }

    private static let plain =
        "dGhvdXNhbmQgaXMgYnl0ZXMgIGEgcGljdHVyZSBzb21lIHBpY3R1cmUgdGhvdXNhbmQgbW9yZSBhIHNvbWUgd29ydGggYSBwaWN0dXJlIGJ5dGVz"
        + "IGJ5dGVzIHBpY3R1cmUgd29ydGggcGljdHVyZSBzb21lIGJ5dGVzIGEgbW9yZSBwaWN0dXJlIHdvcnRoICAgbW9yZSBhIG1vcmUgbW9yZSBieXRl"
        + "cyBhIHdvcnRoIGEgc29tZSBpcyBhIGJ5dGVzIGlzIHNvbWUgcGljdHVyZSBtb3JlIGEgc29tZSAgaXMgcGljdHVyZSBtb3JlIG1vcmUgIHdvcnRo"
        + "IHRob3VzYW5kIHBpY3R1cmUgc29tZSBwaWN0dXJlIG1vcmUgYSBtb3Jl"

    private static let gzip =
        "H4sIAAAAAAACA21PQQ7AIAj7Cl9jm4keHItglv1+CsNoskuVttYikSrjeUBi2B4JDIBwpV1qCcCUwxjEnZnahCbeVCROLyzC0DnzLJlmQItafeD5"
        + "eii42z/TiNQZU9p1aToX7OLCK3xRY6XfhaceL/T0+OomAQAA"

    /// The same text in every coding, encoded with zlib, Google's brotli and Facebook's zstd.
    private static let samples = [
        Coded(coding: "gzip", base64: Self.gzip),
        Coded(coding: "X-GZip", base64: Self.gzip),
        Coded(coding: " , identity, gzip", base64: Self.gzip),
        // A gzip file of two members.
        Coded(
            coding: "gzip",
            base64:
                "H4sIAAAAAAACAyvJyC8tTsxLUcgsVkiqLEktVlBIVCjITC4pLUpVKM7PTYVzSmAqc/OBvESIZHl+UUkGkg6IERASJlYOANw4TSpkAAAAH4sI"
                + "AAAAAAACA12OSw7AIAgFr8LVbGuiC0sjGNPbV34LuwEy72UCdi7w1JNHz0DYMhwvZ4IEDReJZKL0wKBnOqJthWSKKsSSdSoKkQuUSbhxHa7igo"
                + "PSfe3P/TSyPrujeZjCAAAA"
        ),
        Coded(
            coding: "deflate",
            base64:
                "eNptT0EOwCAI+wpfY5uJHhyLYJb9fgrDaLJLlbbWIpEq43lAYtgeCQyAcKVdagnAlMMYxJ2Z2oQm3lQkTi8swtA58yyZZkCLWn3g+XoouNs/04"
                + "jUGVPadWk6F+ziwit8UWOl34WnHi83mWt9"
        ),
        // The zlib header is missing, as some servers do it.
        Coded(
            coding: "deflate",
            base64:
                "bU9BDsAgCPsKX2ObiR4ci2CW/X4Kw2iyS5W21iKRKuN5QGLYHgkMgHClXWoJwJTDGMSdmdqEJt5UJE4vLMLQOfMsmWZAi1p94Pl6KLjbP9OI1B"
                + "lT2nVpOhfs4sIrfFFjpd+Fpx4v"
        ),
        Coded(
            coding: "br",
            base64:
                "GyUBAARya6lergoLCyK4L6+1A/bffn8XRJp0/iuw0NO5jZk1MDjnWIz6p/B/HPo/BQpVi+xoF3qbPVEA3HevIg09xYlzXp58Lg7YSQ+4WKpQQ9"
                + "AMR5l9OGpNZAA8B0u6Gus+dNcC"
        ),
        Coded(
            coding: "zstd",
            base64:
                "KLUv/QRYJQQApAN0aG91c2FuZCBpcyBieXRlcyAgYSBwaWN0dXJlIHNvbWVtb3JlIGF3b3J0aGEgaXMgYWlzIGltb3JlHQBKoFD0gdU0OJGhig"
                + "0YtiHJuNAyEvc4MlAAjAlERYBy4WcGnOOWGtFDwMHjiE5c4UJMAkcN4IpAaoARBqjKaKBGNVVAoJhPkzzkeg=="
        ),
        Coded(
            coding: "gzip, gzip",
            base64:
                "H4sIAAAAAAACAwF4AIf/H4sIAAAAAAACA21PQQ7AIAj7Cl9jm4keHItglv1+CsNoskuVttYikSrjeUBi2B4JDIBwpV1qCcCUwxjEnZnahCbeVC"
                + "ROLyzC0DnzLJlmQItafeD5eii42z/TiNQZU9p1aToX7OLCK3xRY6XfhaceL/T0+OomAQAAR4PTGHgAAAA="
        ),
        Coded(
            coding: "deflate, gzip",
            base64:
                "H4sIAAAAAAACAwFsAJP/eNptT0EOwCAI+wpfY5uJHhyLYJb9fgrDaLJLlbbWIpEq43lAYtgeCQyAcKVdagnAlMMYxJ2Z2oQm3lQkTi8swtA58y"
                + "yZZkCLWn3g+XoouNs/04jUGVPadWk6F+ziwit8UWOl34WnHi83mWt9kLbf62wAAAA="
        ),
        Coded(
            coding: "gzip, br",
            base64:
                "izuAH4sIAAAAAAACA21PQQ7AIAj7Cl9jm4keHItglv1+CsNoskuVttYikSrjeUBi2B4JDIBwpV1qCcCUwxjEnZnahCbeVCROLyzC0DnzLJlmQI"
                + "tafeD5eii42z/TiNQZU9p1aToX7OLCK3xRY6XfhaceL/T0+OomAQAAAw=="
        ),
    ]

    /// The samples that this build can decode.
    private static let all = samples.filter { !$0.isMissing }

    @Test(arguments: Self.samples.filter(\.isMissing))
    func `a coding whose trait is missing is refused`(coded: Coded) async throws {
        let origin = try FaultyOrigin(["/a": .body(coded.bytes, headers: [("Content-Encoding", coded.coding)])])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .invalidResponse)
    }

    @Test(arguments: Self.all)
    func `a coded body is decoded, however it is cut into pieces`(coded: Coded) async throws {
        let origin = try FaultyOrigin([
            "/whole": .body(coded.bytes, headers: [("Content-Encoding", coded.coding)]),
            "/bytes": .chunked(coded.bytes.map { [$0] }, headers: [("Content-Encoding", coded.coding)]),
        ])
        for path in ["/whole", "/bytes"] {
            let body = try await self.downloader.body(at: origin.url(path))
            #expect(body == Data(base64Encoded: Self.plain), "\(path)")
        }
    }

    @Test(arguments: Self.all)
    func `a coded body that breaks off is an error`(coded: Coded) async throws {
        for count in [1, 2, 3, 10, 30, coded.bytes.count / 2, coded.bytes.count - 1] {
            let part = Array(coded.bytes[..<count])
            let origin = try FaultyOrigin([
                "/declared": .body(part, headers: [("Content-Encoding", coded.coding)]),
                "/chunked": .chunked([part], headers: [("Content-Encoding", coded.coding)]),
            ])
            for path in ["/declared", "/chunked"] {
                let error = try await self.downloader.error(at: origin.url(path))
                #expect(error.code == .bodyCutShort, "\(path) after \(count)")
                #expect(error.status == 200)
            }
        }
    }

    /// A complete gzip file that contains a truncated one.
    private static let cutInside =
        "H4sIAAAAAAACA5Pv5mAAASbmXH9HvgMKHL+54pNnd8rJdCdM+1vHdThjk/fUbdeUJmo9rnRIuiHHydNQsDQ2i/PAlMMSR+bOvNWidi9ExU9f59AFy886M9McuqNqH/ys0thx2/4yAHvyBO5aAAAA"

    /// A few bytes that decode to more than a transfer's share of a turn: 4 MiB of zeros, coded twice.
    private static let zeros =
        "H4sIAAAAAAACA5Pv5mAAASbmtwcZGYGMJoX/6/M8HBgZRsEoGAWjYBSMglEwCkbBKBgFo2AUjIJRMNRBjXSWg7sgA4MDAwBZZBRbAhAAAA=="

    @Test func `many bodies that give more than they have come whole beside each other`() async throws {
        let bytes = Array(try #require(Data(base64Encoded: Self.zeros)))
        let latch = Latch()
        let answer = FaultyResponse.body(bytes, headers: [("Content-Encoding", "gzip, gzip")])
        let origin = try FaultyOrigin(["/a": FaultyResponse([.wait(latch)] + answer.steps)])
        var configuration = DownloadActor.Configuration()
        configuration.maximumConnectionsPerHost = 16
        let downloader = DownloadActor(configuration: configuration)
        let tasks = (0..<16).map { number in Task { try await downloader.body(at: origin.url("/a?\(number)")) } }
        await origin.waitForRequests(16, for: "/a")
        latch.open()
        for task in tasks { #expect(try await task.value == Data(count: 4 << 20)) }
    }

    @Test func `a coding inside of another may not break off either`() async throws {
        let bytes = Array(try #require(Data(base64Encoded: Self.cutInside)))
        let fields = [("Content-Encoding", "gzip"), ("content-encoding", "gzip")]
        let origin = try FaultyOrigin(["/a": .body(bytes, headers: fields)])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .bodyCutShort)
    }

    @Test func `a stream of a coded body that breaks off ends with an error`() async throws {
        let bytes = Array(try #require(Data(base64Encoded: Self.gzip)).dropLast(3))
        let origin = try FaultyOrigin(["/a": .body(bytes, headers: [("Content-Encoding", "gzip")])])
        let stream = try await self.downloader.stream(for: DownloadRequest(url: origin.url("/a")))
        let error = await #expect(throws: DownloadError.self) { for try await _ in stream {} }
        #expect(error?.code == .bodyCutShort)
    }

    /// Returns `bytes` as uncompressed `deflate` data (RFC 1951, 3.2.4).
    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
        stride(from: 0, to: bytes.count, by: 5_000).flatMap { start -> [UInt8] in
            let block = bytes[start..<min(bytes.count, start + 5_000)]
            let isLast: UInt8 = block.endIndex == bytes.count ? 1 : 0
            let (low, high) = (UInt8(block.count & 0xFF), UInt8(block.count >> 8))
            return [isLast, low, high, ~low, ~high] + block
        }
    }

    @Test(arguments: [1, 2])
    func `a coded stream that paused loses and doubles nothing`(depth: Int) async throws {
        let content = Array(pattern(300_000))
        let body = (0..<depth).reduce(content) { bytes, _ in Self.stored(bytes) }
        let coding = Array(repeating: "deflate", count: depth).joined(separator: ",")
        let origin = try FaultyOrigin(["/a": .body(body, headers: [("Content-Encoding", coding)])])
        let request = DownloadRequest(url: origin.url("/a"))
        let stream = try await self.downloader.stream(for: request, bufferSize: 1)
        var received = Data()
        for try await chunk in stream { received += chunk }
        #expect(received == Data(content))
    }

    @Test func `blocks of nothing count towards the limit of bodies`() async throws {
        // Each block is empty, and the last block never comes.
        let blocks = Array(repeating: [0, 0, 0, 0xFF, 0xFF] as [UInt8], count: 20_000).flatMap(\.self)
        let body = FaultyResponse([
            FaultyResponse.head(200, [("Content-Encoding", "deflate"), ("Transfer-Encoding", "chunked")]),
            .send(FaultyResponse.chunk(blocks)), .stall,
        ])
        let origin = try FaultyOrigin(["/a": body])
        let request = DownloadRequest(url: origin.url("/a"), maximumBodySize: 10_000)
        #expect(try await self.downloader.error(for: request).code == .bodyTooLarge)
    }

    @Test func `bytes between two codings take turns, though they give nothing`() throws {
        let blocks = Array(repeating: [0, 0, 0, 0xFF, 0xFF] as [UInt8], count: 13_000).flatMap(\.self)
        // Put all blocks into one stored block.
        let (low, high) = (UInt8(blocks.count & 0xFF), UInt8(blocks.count >> 8))
        let coded = [0, low, high, ~low, ~high] + blocks
        let decoder = try ContentDecoder([.deflate, .deflate], limit: 1 << 20)
        var (told, isResting) = (0, false)
        var verdicts: [Transfer.Verdict] = []
        while verdicts.last != .proceed {
            let verdict = try coded.withUnsafeBytes { chunk in
                try decoder.decode(
                    chunk,
                    mayGoOn: { count in
                        told += count
                        isResting.toggle()
                        return !isResting
                    },
                    { _ in .abort }
                )
            }
            verdicts.append(verdict)
        }
        #expect(told == blocks.count)
        #expect(verdicts == [.pause, .proceed])
    }

    @Test func `more than two codings are refused`() async throws {
        let coding = Array(repeating: "gzip", count: 3).joined(separator: ", ")
        let origin = try FaultyOrigin(["/a": .body([1], headers: [("Content-Encoding", coding)])])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .invalidResponse)
    }

    /// Decodes `bytes` as libcurl passes them to a decoder, or returns `nil` if they are damaged.
    ///
    /// The bytes come in pieces. After a pause, libcurl repeats the refused piece, and may append more bytes to it.
    private static func decoded(
        _ bytes: [UInt8],
        _ codings: [ContentCoding],
        pieces: Int,
        _ random: inout SeededGenerator
    ) throws -> (bytes: [UInt8], isComplete: Bool)? {
        let decoder = try ContentDecoder(codings, limit: 1 << 20)
        var output: [UInt8] = []
        var rest = bytes[...]
        var count = 0
        var pausesLeft = pieces
        while !rest.isEmpty {
            count = min(rest.count, max(count, Int.random(in: 1...max(1, bytes.count / pieces), using: &random)))
            let verdict: Transfer.Verdict
            do {
                verdict = try rest.prefix(count).withUnsafeBytes { chunk in
                    try decoder.decode(chunk) { piece in
                        if pausesLeft > 0, Bool.random(using: &random) {
                            pausesLeft -= 1
                            return .pause
                        }
                        output += piece
                        return .proceed
                    }
                }
            } catch ContentDecoder.Failure.corrupt {
                return nil
            }
            guard verdict == .proceed else { continue }
            rest = rest.dropFirst(count)
            count = 0
        }
        return (output, decoder.isComplete)
    }

    @Test(arguments: Self.all)
    func `pieces, pauses and damage change nothing of what is decoded`(coded: Coded) throws {
        guard case .known(let codings) = ContentCodings(["Content-Encoding": coded.coding]) else {
            Issue.record("\(coded.coding)")
            return
        }
        var random = SeededGenerator(seed: 7)
        for round in 0..<60 {
            var bytes = coded.bytes
            if round > 0 { bytes[Int.random(in: bytes.indices, using: &random)] ^= UInt8(1 << (round % 8)) }
            var whole = SeededGenerator(seed: 1)
            let expected = try Self.decoded(bytes, codings, pieces: 1, &whole)
            let found = try Self.decoded(bytes, codings, pieces: 1 + round, &random)
            #expect(found?.isComplete == expected?.isComplete, "round \(round)")
            if expected?.isComplete ?? false { #expect(found?.bytes == expected?.bytes, "round \(round)") }
            if round == 0 { #expect(expected.map { Data($0.bytes) } == Data(base64Encoded: Self.plain)) }
        }
    }

    @Test func `what is damaged inside is no valid response`() async throws {
        for coded in Self.all {
            var bytes = coded.bytes
            for index in bytes.indices.dropFirst(8).prefix(40) { bytes[index] ^= 0x5A }
            let origin = try FaultyOrigin(["/a": .body(bytes, headers: [("Content-Encoding", coded.coding)])])
            let code = try await self.downloader.error(at: origin.url("/a")).code
            #expect(code == .invalidResponse || code == .bodyCutShort, "\(coded.coding)")
        }
    }

    @Test func `bytes after the end of a coded body are no part of it`() async throws {
        for coded in Self.all {
            let bytes = coded.bytes + [0, 0, 0]
            let origin = try FaultyOrigin(["/a": .body(bytes, headers: [("Content-Encoding", coded.coding)])])
            let body = try await self.downloader.body(at: origin.url("/a"))
            #expect(body == Data(base64Encoded: Self.plain), "\(coded.coding)")
        }
    }

    @Test func `an answer without a body needs no end`() async throws {
        let head = FaultyResponse([FaultyResponse.head(304, [("ETag", "\"a\""), ("Content-Encoding", "gzip")])])
        let origin = try FaultyOrigin(["/a": head])
        var request = DownloadRequest(url: origin.url("/a"), headers: ["If-None-Match": "\"a\""])
        request.acceptableStatusCodes = .success.union(304)
        #expect(try await self.downloader.response(for: request).status == 304)
        origin.script("/b", FaultyResponse([FaultyResponse.head(200, [("Content-Encoding", "gzip")])]))
        let only = DownloadRequest(url: origin.url("/b"), method: .head)
        #expect(try await self.downloader.response(for: only).body.isEmpty)
    }

    @Test func `a transfer coding that was not asked for is refused`() async throws {
        let bytes = Array(try #require(Data(base64Encoded: Self.gzip)))
        let chunked = FaultyResponse([
            FaultyResponse.head(200, [("Transfer-Encoding", "gzip, chunked")]),
            .send(FaultyResponse.chunk(Array(bytes.dropLast(20)))), .send(FaultyResponse.chunk([])),
        ])
        let origin = try FaultyOrigin(["/a": chunked])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .invalidResponse)
    }
}
