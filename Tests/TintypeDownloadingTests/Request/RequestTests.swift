// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct RequestTests {
    private let origin: FaultyOrigin
    private let downloader = DownloadActor.patient()

    init() throws {
        self.origin = try FaultyOrigin(["/a": .echo])
    }

    private func sent(_ change: (inout DownloadRequest) -> Void) async throws -> String {
        var request = DownloadRequest(url: self.origin.url("/a"))
        change(&request)
        return String(decoding: try await self.downloader.response(for: request).body, as: UTF8.self)
    }

    @Test func `fields keep their order and duplicates`() async throws {
        let head = try await self.sent {
            $0.headers.append("1", for: "X-One")
            $0.headers.append("2", for: "X-Two")
            $0.headers.append("3", for: "X-One")
        }
        #expect(head.contains("X-One: 1\r\nX-Two: 2\r\nX-One: 3\r\n"))
    }

    @Test func `basic and bearer credentials are sent, and not with the next request`() async throws {
        let basic = try await self.sent { $0.credentials = .basic(user: "user", password: "s3cret") }
        #expect(basic.contains("Authorization: Basic dXNlcjpzM2NyZXQ="))
        #expect(try await self.sent { $0.credentials = .bearer("t0ken") }.contains("Authorization: Bearer t0ken"))
        #expect(try await !self.sent { _ in }.contains("Authorization"))
    }

    @Test func `a digest challenge is answered`() async throws {
        let challenge = FaultyResponse.body(
            Array(repeating: 7, count: 100_000),
            status: 401,
            headers: [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")]
        )
        self.origin.script("/d", .body([5]))
        self.origin.script("/d", sequence: [challenge])
        let request = DownloadRequest(
            url: self.origin.url("/d"),
            credentials: .digest(user: "user", password: "s3cret")
        )
        let response = try await self.downloader.response(for: request)
        #expect(response.body == Data([5]))
        #expect(response.status == 200)
        let head = self.origin.requestHeads(for: "/d").last ?? ""
        #expect(head.contains("Authorization: Digest username=\"user\""))
        #expect(!head.contains("s3cret"))
    }

    @Test func `credentials stay with their origin`() async throws {
        let other = try FaultyOrigin(["/b": .echo])
        self.origin.script("/r", .redirect(to: other.url("/b").absoluteString))
        for credentials in [Credentials.basic(user: "u", password: "s3cret"), .bearer("s3cret")] {
            let request = DownloadRequest(url: self.origin.url("/r"), credentials: credentials)
            let body = try await self.downloader.response(for: request).body
            #expect(!String(decoding: body, as: UTF8.self).contains("Authorization"))
        }
        #expect(self.origin.requestHeads(for: "/r").allSatisfy { $0.contains("Authorization") })
    }

    @Test func `a jar keeps cookies and sends them back to their host only`() async throws {
        let jar = CookieJar()
        self.origin.script("/set", .body([1], headers: [("Set-Cookie", "id=7; Path=/")]))
        let first = DownloadRequest(url: self.origin.url("/set"))
        _ = try await self.downloader.response(for: first)
        #expect(jar.cookies.isEmpty)
        var second = first
        second.cookies = .jar(jar)
        _ = try await self.downloader.response(for: second)
        #expect(jar.cookies.map(\.name) == ["id"])
        #expect(try await self.sent { $0.cookies = .jar(jar) }.contains("Cookie: id=7"))
        #expect(try await !self.sent { _ in }.contains("Cookie"))
        let elsewhere = try url("http://localhost:\(self.origin.port)/a")
        let body = try await self.sent {
            $0.url = elsewhere
            $0.cookies = .jar(jar)
        }
        #expect(!body.contains("Cookie"))
        jar.removeAll()
        #expect(jar.cookies.isEmpty)
        #expect(jar.insert(CookieJar.Cookie(name: "a", value: "b", domain: "127.0.0.1")))
        #expect(!jar.insert(CookieJar.Cookie(name: "a", value: "b\r\nX: y", domain: "127.0.0.1")))
        #expect(try await self.sent { $0.cookies = .jar(jar) }.contains("Cookie: a=b"))
    }

    @Test func `a jar keeps the newest cookies of a server that sets ever more`() async throws {
        let jar = CookieJar()
        for start in [0, 40, 80, 120] {
            let fields = (start..<(start + 40)).map { ("Set-Cookie", "c\($0)=\($0); Path=/; Max-Age=1000") }
            self.origin.script("/\(start)", .body([1], headers: fields))
            var request = DownloadRequest(url: self.origin.url("/\(start)"))
            request.cookies = .jar(jar)
            _ = try await self.downloader.response(for: request)
        }
        #expect(Set(jar.cookies.map(\.name)) == Set((110..<160).map { "c\($0)" }))
        // Replacing a cookie does not change its age.
        #expect(jar.insert(CookieJar.Cookie(name: "c110", value: "new", domain: "127.0.0.1")))
        #expect(jar.insert(CookieJar.Cookie(name: "c160", value: "1", domain: "127.0.0.1")))
        #expect(Set(jar.cookies.map(\.name)) == Set((111..<161).map { "c\($0)" }))
    }

    @Test func `a jar holds neither too many cookies nor too large ones`() {
        let jar = CookieJar()
        let large = String(repeating: "a", count: 4_096)
        #expect(!jar.insert(CookieJar.Cookie(name: "a", value: large, domain: "example.org")))
        for number in 0..<3_010 {
            let domain = "host\(number / 43).example.org"
            jar.insert(CookieJar.Cookie(name: "c\(number)", value: "1", domain: domain, isSecure: number % 2 == 0))
        }
        let names = Set(jar.cookies.map(\.name))
        #expect(names == Set((10..<3_010).map { "c\($0)" }))
    }

    @Test func `HEAD gives a response without a body`() async throws {
        let nginx = try NginxOrigin(files: ["a": Data([1, 2, 3])])
        let response = try await self.downloader.response(for: DownloadRequest(url: nginx.url("/a"), method: .head))
        #expect(response.status == 200)
        #expect(response.body.isEmpty)
        #expect(response.headers["content-length"] == "3")
        #expect(try nginx.requests().map(\.method) == ["HEAD"])
    }

    @Test func `a proxy is asked for the whole URL, unless the host is excepted`() async throws {
        let proxy = try FaultyOrigin(["http://example.invalid/x": .echo])
        var request = DownloadRequest(url: try url("http://example.invalid/x"))
        request.proxy = .proxy(
            "http://127.0.0.1:\(proxy.port)",
            credentials: .basic(user: "p", password: "q"),
            exceptions: ["127.0.0.1"]
        )
        let body = try await self.downloader.response(for: request).body
        #expect(String(decoding: body, as: UTF8.self).contains("Proxy-Authorization: Basic cDpx"))
        request.url = self.origin.url("/a")
        #expect(try await self.downloader.response(for: request).status == 200)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test(
        arguments: [
            (403, DownloadError.Code.proxyRefused, "allow that host"),
            (407, .proxyRefused, "credentials for the proxy"),
            (404, .proxyRefused, "allow that host"), (302, .proxyRefused, "allow that host"),
            (502, .cannotConnect, "Check the host"), (504, .cannotConnect, "Check the host"),
        ]
    )
    func `a refused tunnel says what to do`(status: Int, code: DownloadError.Code, advice: String) async throws {
        let proxy = try FaultyOrigin(["example.org:443": .body([1], status: status)])
        var request = DownloadRequest(url: try url("https://example.org/a"))
        request.proxy = .proxy("http://127.0.0.1:\(proxy.port)", credentials: .digest(user: "a", password: "b"))
        request.retryPolicy = RetryPolicy(maximumAttempts: 2, initialDelay: .milliseconds(1))
        let error = try await self.downloader.error(for: request)
        #expect(error.code == code)
        #expect(error.message.contains(advice) && error.message.contains("status \(status)"), "\(error)")
        #expect(!error.message.contains("Ask again"))
        // The status is the proxy's, not the host's.
        #expect(error.status == nil)
        #expect(proxy.requestCount(for: "example.org:443") == (code == .cannotConnect ? 2 : 1))
    }

    @Test func `a proxy's refusals by other means say what to do`() async throws {
        let proxy = try FaultyOrigin(["http://example.org/a": .body([1], status: 407)])
        var request = DownloadRequest(url: try url("http://example.org/a"))
        request.proxy = .proxy("http://127.0.0.1:\(proxy.port)")
        #expect(try await self.downloader.error(for: request).message.contains("credentials for the proxy"))
        request.proxy = .proxy("http://proxy.invalid:1")
        #expect(try await self.downloader.error(for: request).message.contains("The proxy has no address"))
        // The server does not speak SOCKS, and closes the connection.
        let socks = try FaultyOrigin()
        request.proxy = .proxy("socks5h://127.0.0.1:\(socks.port)")
        async let error = self.downloader.error(for: request)
        await until { socks.connectionCount == 1 }
        socks.stop()
        let failure = try await error
        #expect(failure.code == .cannotConnect && failure.message.contains("The proxy did not connect"), "\(failure)")
    }

    @Test func `proxies of the environment are used only where they are asked for`() async throws {
        let port: Int = self.origin.port
        await #expect(processExitsWith: .success) { [port = port as Int] in
            setenv("http_proxy", "http://127.0.0.1:1", 1)
            setenv("all_proxy", "http://127.0.0.1:1", 1)
            let url = URL(string: "http://127.0.0.1:\(port)/a") ?? URL(filePath: "/")
            let status = try? await DownloadActor.patient().response(for: DownloadRequest(url: url)).status
            var configuration = DownloadActor.Configuration()
            configuration.proxy = .environment
            let other = try? await DownloadActor(configuration: configuration).response(for: DownloadRequest(url: url))
            exit(status == 200 && other == nil ? 0 : 1)
        }
    }

    @Test func `a Unix-domain socket stands in for the host`() async throws {
        let folder = try TemporaryDirectory()
        let nginx = try NginxOrigin(files: ["a": Data([4])], socketPath: folder.path(of: "socket"))
        var request = DownloadRequest(url: try url("http://images.invalid/a"))
        request.unixSocketPath = folder.path(of: "socket")
        #expect(try await self.downloader.response(for: request).body == Data([4]))
        _ = nginx
    }

    @Test(arguments: [
        (["image/*"], "image/png", true), (["image/png"], "IMAGE/PNG; q=1", true), (["image/png"], "image/jpeg", false),
        (["image/*", "application/octet-stream"], "application/octet-stream", true), (["*/*"], "text/html", true),
        (["image/*"], "text/html; charset=utf-8", false), (["image/*"], "imageX/png", false), ([], "image/png", false),
    ])
    func `only acceptable types give a response`(types: [String], type: String, isAccepted: Bool) async throws {
        self.origin.script("/t", .body([1], headers: [("Content-Type", type)]))
        var request = DownloadRequest(url: self.origin.url("/t"))
        request.acceptableContentTypes = types
        if isAccepted {
            #expect(try await self.downloader.response(for: request).body == Data([1]))
        } else {
            #expect(try await self.downloader.error(for: request).code == .unacceptableContentType)
        }
    }

    @Test func `no description shows a secret`() {
        let secrets: [Any] = [Credentials.basic(user: "u", password: "s3cret"), Credentials.bearer("s3cret")]
        for secret in secrets { #expect(!"\(secret)".contains("s3cret")) }
    }

    @Test func `requests that differ in identity or trust do not share`() async throws {
        let door = Latch()
        self.origin.script("/s", .held(by: door, body: [1]))
        let plain = DownloadRequest(url: self.origin.url("/s"))
        var requests = [plain]
        let changes: [(inout DownloadRequest) -> Void] = [
            { $0.credentials = .bearer("a") }, { $0.credentials = .bearer("b") }, { $0.cookies = .jar(CookieJar()) },
            { $0.tls = TLSPolicy() }, { $0.proxy = ProxyPolicy.none }, { $0.acceptableContentTypes = ["*/*"] },
            { $0.method = .head },
        ]
        for change in changes {
            var request = plain
            change(&request)
            requests.append(request)
        }
        self.origin.script("/s", .body([1], headers: [("Content-Type", "a/b")]))
        let downloader = self.downloader
        await downloader.suspend()
        let tasks = requests.map { request in Task { try await downloader.response(for: request) } }
        await until { await downloader.counters.started >= requests.count }
        #expect(await downloader.counters.shared == 0)
        await downloader.resume()
        for task in tasks { _ = try await task.value }
    }
}
