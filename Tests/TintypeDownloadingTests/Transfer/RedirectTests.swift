// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct RedirectTests {
    private let downloader = DownloadActor.patient()

    @Test(arguments: [301, 302, 303, 307, 308])
    func `redirects are followed`(status: Int) async throws {
        let origin = try FaultyOrigin([
            "/x/a": .redirect(to: "../b", status: status), "/b": .redirect(to: "/c?d=e#f"), "/c": .body([1]),
        ])
        let response = try await self.downloader.response(for: DownloadRequest(url: origin.url("/x/a")))
        #expect(response.body == Data([1]))
        #expect(response.url.path == "/c")
        #expect(response.metrics.redirectCount == 2)
        #expect(origin.connectionCount == 1)
    }

    @Test func `redirects go to other hosts`() async throws {
        let target = try FaultyOrigin(["/b": .body([1])])
        let origin = try FaultyOrigin(["/a": .redirect(to: target.url("/b").absoluteString)])
        let response = try await self.downloader.response(for: DownloadRequest(url: origin.url("/a")))
        #expect(response.url == target.url("/b"))
    }

    @Test func `five redirects are followed and six are not`() async throws {
        let origin = try FaultyOrigin(["/6": .body([1])])
        for number in 0..<6 { origin.script("/\(number)", .redirect(to: "/\(number + 1)")) }
        #expect(try await self.downloader.body(at: origin.url("/1")) == Data([1]))
        #expect(try await self.downloader.error(at: origin.url("/0")).code == .tooManyRedirects)
    }

    @Test func `a loop ends`() async throws {
        let origin = try FaultyOrigin(["/a": .redirect(to: "/b"), "/b": .redirect(to: "/a")])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .tooManyRedirects)
        #expect(origin.requestCount(for: "/a") + origin.requestCount(for: "/b") == 6)
    }

    @Test func `a location with a fragment alone is a loop`() async throws {
        let origin = try FaultyOrigin(["/a": .redirect(to: "#b"), "/": .body([1])])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .tooManyRedirects)
        #expect(origin.requestCount(for: "/a") == 6)
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://127.0.0.1/a", "data:,x", "gopher://127.0.0.1/"])
    func `redirects to other schemes are refused`(target: String) async throws {
        let origin = try FaultyOrigin(["/a": .redirect(to: target)])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .unsafeRedirect)
    }

    @Test func `a location that is no URL is an invalid response`() async throws {
        let origin = try FaultyOrigin(["/a": .redirect(to: "http://[bad/")])
        #expect(try await self.downloader.error(at: origin.url("/a")).code == .invalidResponse)
    }

    struct Location: Sendable, CustomTestStringConvertible {
        let bytes: [UInt8]
        let path: String

        var testDescription: String { self.path }
    }

    @Test(arguments: [
        Location(bytes: Array("/caf".utf8) + [0xE9], path: "/caf%E9"),
        Location(bytes: Array("caf\u{E9}".utf8), path: "/x/caf%C3%A9"),
        Location(bytes: [0xFF, 0x2F, 0xC3, 0xA9, 0x3F, 0xFC], path: "/x/%FF/%C3%A9?%FC"),
        Location(bytes: Array("/a b%20".utf8) + [0x80], path: "/a%20b%20%80"),
        // A folded line, as old servers send it.
        Location(bytes: Array("/".utf8) + [0xE4] + Array("\r\n ".utf8) + [0xF6], path: "/%E4%20%F6"),
    ])
    func `the bytes of a location are asked for as they are`(location: Location) async throws {
        for prefix in ["", "http://127.0.0.1:", "//127.0.0.1:"] {
            let origin = try FaultyOrigin()
            // Only an absolute path can follow a host.
            let bytes = location.bytes
            guard prefix.isEmpty || bytes.first == UInt8(ascii: "/") else { continue }
            let host = prefix.isEmpty ? "" : "\(prefix)\(origin.port)"
            let head = Array("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: \(host)".utf8)
            origin.script("/x/a", FaultyResponse([.send(head + bytes + Array("\r\n\r\n".utf8))]))
            let path = String(location.path.prefix { $0 != "?" })
            origin.script(path, .echo)
            let body = try await self.downloader.body(at: origin.url("/x/a"))
            #expect(String(decoding: body, as: UTF8.self).hasPrefix("GET \(location.path) HTTP/1.1\r\n"))
        }
    }

    @Test func `credentials do not reach another origin`() async throws {
        let target = try FaultyOrigin(["/b": .echo])
        let origin = try FaultyOrigin(["/a": .redirect(to: target.url("/b").absoluteString)])
        var request = DownloadRequest(url: try url("http://user:s3cret@127.0.0.1:\(origin.port)/a"))
        request.headers = [
            "Authorization": "Bearer s3cret", "Cookie": "s3cret", "X-Api-Key": "s3cret", "Accept": "image/webp",
        ]
        let body = try await self.downloader.response(for: request).body
        let sent = String(decoding: body, as: UTF8.self)
        #expect(!sent.contains("s3cret"))
        #expect(!sent.contains("Authorization"))
        #expect(sent.contains("Accept: image/webp"))
    }

    @Test func `a location cannot pass another host off as the same origin`() async throws {
        let target = try FaultyOrigin(["/b": .echo])
        let origin = try FaultyOrigin([:])
        origin.script("/a", .redirect(to: "http://127.0.0.1:\(origin.port)\\@127.0.0.1:\(target.port)/b"))
        let request = DownloadRequest(url: origin.url("/a"), headers: ["Authorization": "Bearer s3cret"])
        let body = try await self.downloader.response(for: request).body
        #expect(!String(decoding: body, as: UTF8.self).contains("s3cret"))
    }

    @Test func `credentials stay on the same origin`() async throws {
        let origin = try FaultyOrigin(["/b": .echo])
        origin.script("/a", .redirect(to: origin.url("/b").absoluteString))
        let body = try await self.downloader.body(at: url("http://user:s3cret@127.0.0.1:\(origin.port)/a"))
        #expect(String(decoding: body, as: UTF8.self).contains("Authorization: Basic dXNlcjpzM2NyZXQ="))
    }

    @Test func `credentials of one request are not sent with the next`() async throws {
        let origin = try FaultyOrigin(["/a": .echo])
        let first = try await self.downloader.body(at: url("http://user:s3cret@127.0.0.1:\(origin.port)/a"))
        let second = try await self.downloader.body(at: origin.url("/a"))
        #expect(String(decoding: first, as: UTF8.self).contains("Authorization"))
        #expect(!String(decoding: second, as: UTF8.self).contains("Authorization"))
    }
}
