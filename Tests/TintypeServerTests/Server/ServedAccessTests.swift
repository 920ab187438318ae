// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeHTTP
import TintypeImgproxy
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The URLs, clients and sources that a server refuses: signatures, secrets, presets, and the threats to image servers.
@Suite(.waiting, .timeLimit(.minutes(10))) struct ServedAccessTests {
    private func image() throws -> [String: FaultyResponse] { ["/a": .image(try ServerImages.encoded(.png))] }

    private static let keys = [("943b421c9eb07c83", "520f986b998682f1"), ("00ff10", "00")]

    private static func signer(_ index: Int, size: Int = 32) throws -> URLSigner {
        let key = try SignatureKey(key: Self.keys[index].0, salt: Self.keys[index].1)
        return try URLSigner(keys: [SignatureKeys(key: key.key, salt: key.salt)], size: size)
    }

    private static let signed: @Sendable (inout ImageServer.Configuration) throws -> Void = { configuration in
        configuration.addresses.keys = try Self.keys.map { try SignatureKey(key: $0.0, salt: $0.1) }
    }

    // MARK: Signatures

    @Test func `a URL that one of the keys has signed is served, and no other one`() async throws {
        try await ServerFixture.run(try self.image(), change: Self.signed) { fixture in
            let path = "/w:50/plain/\(fixture.origin.url("/a").absoluteString)"
            for index in 0..<2 {
                let response = try await fixture.response(to: try Self.signer(index).sign(path))
                #expect(response.status == 200)
            }
            let valid = try Self.signer(0).sign(path)
            let signature = valid.dropFirst().prefix { $0 != "/" }
            for target in [
                "/unsafe\(path)", "/insecure\(path)", "/_\(path)", "//\(path)", path, "\(valid)@png",
                valid.replacingFirst("w:50", with: "w:51"), "/\(signature.dropLast())\(path)", "/\(signature)=\(path)",
                "/\(signature)A\(path)", "/\(signature)/w:60/\(signature)\(path)",
                "/\(signature)/w:60/\(signature.replacingFirst("-", with: "%2D"))\(path)",
                "/\(signature.uppercased())\(path)", "/\(signature)/\(path)/", "/\(signature)/w:1\(path)",
            ] {
                let response = try await fixture.response(to: target)
                #expect(response.status == 403 || response.status == 404, "\(target)")
                #expect(response["Cache-Control"]?.contains("31536000") != true)
            }
            #expect(try await fixture.response(to: "/unsafe\(path)").text == "Forbidden\n")
            #expect(fixture.origin.requestCount(for: "/a") == 1)
        }
    }

    @Test func `a shortened signature is valid if the server has its size, and so are trusted signatures`() async throws
    {
        let change: (inout ImageServer.Configuration) throws -> Void = {
            try Self.signed(&$0)
            $0.addresses.signatureSize = 8
            $0.addresses.trustedSignatures = ["old"]
        }
        try await ServerFixture.run(try self.image(), change: change) { fixture async throws in
            let path = "/w:50/plain/\(fixture.origin.url("/a").absoluteString)"
            #expect(try await fixture.response(to: try Self.signer(0, size: 8).sign(path)).status == 200)
            #expect(try await fixture.response(to: try Self.signer(0).sign(path)).status == 403)
            #expect(try await fixture.response(to: "/old\(path)").status == 200)
            #expect(try await fixture.response(to: "/older\(path)").status == 403)
        }
    }

    @Test func `the signatures of imgproxy's documentation are valid`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(try ServerImages.encoded(.png), to: "a.png")
        let change: (inout ImageServer.Configuration) throws -> Void = {
            try Self.signed(&$0)
            $0.sources.localRoot = URL(filePath: folder.path)
        }
        try await ServerFixture.run(change: change) { fixture in
            let target = "/HjuBah7U8NmMaIy7ODWlr-pzSO-eSZFQQgQE5SQk7O0/rs:fit:50:50/plain/local:///a.png"
            let response = try await fixture.response(to: target)
            #expect(response.status == 200)
            #expect(try response.size() == "50x25")
            // Proxies change the address in these ways.
            for damaged in [
                target.replacingFirst("local:///", with: "local:/"),
                target.replacingFirst("rs:fit:50:50", with: "rs%3Afit%3A50%3A50"),
                "/" + target,
            ] {
                #expect(try await fixture.response(to: damaged).status == 200, "\(damaged)")
            }
        }
    }

    @Test func `keys can change without a restart`() async throws {
        try await ServerFixture.run(try self.image(), change: Self.signed) { fixture in
            let path = "/w:50/plain/\(fixture.origin.url("/a").absoluteString)"
            let (old, new) = (try Self.signer(0).sign(path), try Self.signer(1).sign(path))
            #expect(try await fixture.response(to: old).status == 200)
            var addresses = fixture.server.service.configuration.addresses
            addresses.keys.removeFirst()
            try fixture.server.reload(addresses)
            #expect(try await fixture.response(to: old).status == 403)
            #expect(try await fixture.response(to: new).status == 200)
            addresses.presets = ["broken": "blorp:1"]
            #expect(throws: SettingError.self) { try fixture.server.reload(addresses) }
            #expect(try await fixture.response(to: new).status == 200)
        }
    }

    @Test func `a forgotten signature is said to be missing`() async throws {
        try await ServerFixture.run(try self.image()) { fixture async throws in
            #expect(
                try await fixture.response(to: "/w:50/plain/\(fixture.origin.url("/a").absoluteString)").status == 403
            )
        }
    }

    // MARK: URLs

    @Test func `presets are applied, alone or beside options`() async throws {
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.addresses.presets = ["default": "q:50", "small": "rs:fill:40:40", "loop": "pr:loop/w:30"]
        }
        try await ServerFixture.run(try self.image(), change: change) { fixture async throws in
            #expect(try (try await fixture.image("pr:small")).size() == "40x40")
            #expect(try (try await fixture.image("pr:small/w:20")).size() == "20x40")
            #expect(try (try await fixture.image("pr:loop")).size() == "30x15")
            #expect(try await fixture.image("pr:unknown").status == 404)
        }
        try await ServerFixture.run(
            try self.image(),
            change: {
                change(&$0)
                $0.addresses.usesOnlyPresets = true
            }
        ) { fixture async throws in
            let source = "plain/\(fixture.origin.url("/a").absoluteString)"
            #expect(try (try await fixture.response(to: "/unsafe/small/\(source)@webp")).size() == "40x40")
            #expect(try await fixture.response(to: "/unsafe/w:50/\(source)").status == 404)
        }
    }

    @Test func `sources come in Base64 with or without padding, in pieces, and with a format`() async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            let url = fixture.origin.url("/a").absoluteString
            let text = Data(url.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            let bare = text.replacing("=", with: "")
            let middle = bare.index(bare.startIndex, offsetBy: bare.count / 2)
            for source in [text, bare, "\(bare[..<middle])/\(bare[middle...])", "\(bare).webp", "\(bare).png"] {
                let response = try await fixture.response(to: "/unsafe/w:50/\(source)")
                #expect(response.status == 200, "\(source)")
            }
            for source in ["\(bare).png.jpg", "!\(bare)", "", ".png"] {
                #expect(try await fixture.response(to: "/unsafe/w:50/\(source)").status == 404, "\(source)")
            }
            #expect(try await fixture.image("w:50", "/a", suffix: "@png@jpg").status == 404)
        }
    }

    @Test(arguments: [
        "w:99999999999999999999", "w:-1", "dpr:1e308", "dpr:nan", "dpr:inf", "z:1e99", "bl:1e308", "bl:nan",
        "sh:inf", "pix:99999999999999999999",
        "pd:99999999999999999999", "c:1e400:1", "rot:45", "t:x", "g:fp:2:0", "wm:2", "mb:-1", "rs:blorp:1:1",
        "q:1:2",
    ])
    func `an option with an invalid or extreme value is refused`(options: String) async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            let status = try await fixture.image("w:5/\(options)").status
            #expect(status == 404 || status == 422, "\(status)")
        }
    }

    @Test(arguments: [
        "w:100000/el:1", "w:8192/h:8192/el:1/dpr:8", "z:1000/el:1", "pd:100000", "w:1000000/h:1/ex:1",
        "mw:1000000/el:1",
        "dpr:1000/el:1/w:100", "pd:8000:8000:8000:8000", "exar:1/w:1/h:1000000/el:1",
    ])
    func `no option makes a result that is too large, or one that takes the server's memory`(
        options: String
    ) async throws {
        // Smaller than the default, whose results take seconds in a debug build.
        let change: (inout ImageServer.Configuration) -> Void = { $0.images.maximumResultSide = 1_024 }
        try await ServerFixture.run(try self.image(), change: change) { fixture in
            let response = try await fixture.image(options)
            if response.status == 200 {
                let header = try response.decoder().header
                #expect(
                    max(header.pixelWidth, header.pixelHeight) <= 1_024,
                    "\(header.pixelWidth)x\(header.pixelHeight)"
                )
            } else {
                #expect(response.status == 404 || response.status == 422)
            }
        }
    }

    @Test func `only options that the server allows are accepted`() async throws {
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.addresses.allowedOptions = ["w", "pr"]
            $0.addresses.presets = ["blurred": "blur:1"]
        }
        try await ServerFixture.run(try self.image(), change: change) { fixture async throws in
            #expect(try await fixture.image("w:9").status == 200)
            #expect(try await fixture.image("w:9/pr:blurred").status == 200)
            #expect(try await fixture.image("w:9/blur:1").status == 404)
        }
    }

    @Test func `a server does not start with an unknown name among its allowed options`() async throws {
        var configuration = ServerFixture.configuration()
        configuration.addresses.allowedOptions = ["q", "resise", "autoquality"]
        let error = await #expect(throws: SettingError.self) { try await ImageService.check(configuration) }
        #expect(error?.message.contains("The allowed option \"resise\" does not exist") == true, "\(error as Any)")
        configuration.addresses.allowedOptions?.remove("resise")
        try await ImageService.check(configuration)
    }

    @Test func `options about safety need the server's permission`() async throws {
        try await ServerFixture.run(try self.image()) { fixture async throws in
            for options in ["msr:1000", "msfs:1000", "maf:100", "mafr:1000", "mrd:100000"] {
                #expect(try await fixture.image(options).status == 403, "\(options)")
            }
        }
        let change: (inout ImageServer.Configuration) -> Void = { $0.addresses.allowsSecurityOptions = true }
        try await ServerFixture.run(try self.image(), change: change) { fixture async throws in
            #expect(try await fixture.image("msfs:10/w:5").status == 422)
            #expect(try await fixture.image("msr:0.00001").status == 422)
            #expect(try await fixture.image("msr:1/w:5").status == 200)
        }
    }

    @Test func `an option replaces a limit of the server, even by the value that imgproxy has by default`() async throws
    {
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.addresses.allowsSecurityOptions = true
            $0.loader.limits.maximumPixels = 100
            $0.loader.downloads.maximumBodySize = 100
        }
        try await ServerFixture.run(try self.image(), change: change) { fixture async throws in
            for options in ["w:5", "msr:50/w:5", "msfs:32000000/w:5", "msfs:32000000/mafr:0/w:5"] {
                #expect(try await fixture.image(options).status == 422, "\(options)")
            }
            for options in ["msr:50/msfs:32000000/w:5", "mafr:50/msfs:32000000/w:5"] {
                #expect(try await fixture.image(options).status == 200, "\(options)")
            }
        }
    }

    @Test func `a query does not change the answer, and fills no cache`() async throws {
        try await ServerFixture.run(try self.image()) { fixture in
            let target = fixture.target("w:50", "/a")
            var tags: Set<String> = []
            for query in ["", "?", "?a=1", "?a=2&b", "?http://x/"] {
                tags.insert(try await fixture.response(to: target + query)["ETag"] ?? "")
            }
            #expect(tags.count == 1)
            #expect(await fixture.statistics.encode.count == 1)
        }
    }

    // MARK: Clients

    @Test func `a server with a secret serves images only to those who bring it`() async throws {
        try await ServerFixture.run(try self.image(), change: { $0.secret = "sesame" }) { fixture in
            for fields in [
                [:], ["Authorization": "Bearer sesam"], ["Authorization": "sesame"], ["Authorization": "Basic sesame"],
            ] as [HeaderFields] {
                let response = try await fixture.image("w:50", fields)
                #expect((response.status, response.text) == (403, "Forbidden\n"))
            }
            #expect(fixture.origin.requestCount(for: "/a") == 0)
            let fields = ["Authorization": "Bearer sesame"] as HeaderFields
            #expect(try await fixture.image("w:50", fields).status == 200)
            #expect(try await fixture.image("w:50").status == 403)
            #expect(try await fixture.response(to: "/info" + fixture.target("", "/a")).status == 403)
            #expect(try await fixture.response(to: "/health").status == 200)
        }
    }

    @Test func `a wrong method is answered with the methods of the address, and its body is not the next request`()
        async throws
    {
        let smuggled = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        try await ServerFixture.run(change: { $0.purgeSecret = "wash" }) { fixture in
            for (line, methods) in [
                ("POST /unsafe/w:5/plain/x", "GET, HEAD, OPTIONS"), ("PUT /unsafe/w:5/plain/x", "GET, HEAD, OPTIONS"),
                ("DELETE /", "GET, HEAD, OPTIONS"), ("PUT /purge", "POST, OPTIONS"),
            ] {
                let client = try await ServerClient(to: fixture.server.address)
                let head = "\(line) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(smuggled.utf8.count)\r\n\r\n"
                await client.send(head + smuggled)
                let response = try await client.receive()
                #expect(response.status == 405 && response["Allow"] == methods, "\(line)")
                #expect(response.text == "This address answers \(methods).\n")
                #expect(response["Connection"] == "close")
                #expect(try await client.receiveToEnd().isEmpty)
            }
            #expect(try await fixture.response(to: "/purge", method: "OPTIONS")["Allow"] == "POST, OPTIONS")
            let response = try await fixture.response(to: "/purge")
            #expect(response.status == 405 && response["Allow"] == "POST, OPTIONS")
        }
    }

    @Test func `pages of other sites may use images if the server is set so`() async throws {
        try await ServerFixture.run(try self.image(), change: { $0.allowedOrigin = "*" }) { fixture in
            #expect(try await fixture.image("w:50")["Access-Control-Allow-Origin"] == "*")
            #expect(try await fixture.image("w:50")["Access-Control-Allow-Origin"] == "*")
            #expect(try await fixture.image("w:x")["Access-Control-Allow-Origin"] == "*")
            let options = try await fixture.response(to: "/unsafe/w:5/plain/x", method: "OPTIONS")
            #expect(options.status == 204)
            #expect(options["Access-Control-Allow-Origin"] == "*")
            #expect(options["Access-Control-Allow-Methods"]?.contains("GET") == true)
        }
        try await ServerFixture.run(try self.image()) { fixture in
            #expect(try await fixture.image("w:50")["Access-Control-Allow-Origin"] == nil)
            let options = try await fixture.response(to: "/unsafe/w:5/plain/x", method: "OPTIONS")
            #expect(options.status == 204 && options["Access-Control-Allow-Origin"] == nil)
        }
    }

    @Test func `fields of clients do not reach the origin`() async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png))]) { fixture async throws in
            let fields: HeaderFields = [
                "Cookie": "session=forged", "Authorization": "Bearer forged", "Referer": "http://forged/",
                "X-Forwarded-For": "forged", "Accept-Language": "forged", "User-Agent": "forged",
            ]
            #expect(try await fixture.image("w:50", fields).status == 200)
            #expect(fixture.origin.requestHeads(for: "/a").allSatisfy { !$0.contains("forged") })
        }
    }

    // MARK: Sources

    @Test func `a source must match a pattern, and so must each redirect`() async throws {
        let other = try FaultyOrigin(["/a": .image(try ServerImages.encoded(.png))], address: "127.0.0.2")
        let responses: [String: FaultyResponse] = [
            "/open/a": .image(try ServerImages.encoded(.png)),
            "/open/out": .redirect(to: other.url("/a").absoluteString),
            "/open/up": .redirect(to: "/closed/a"), "/open/around": .redirect(to: "/open/a"),
            "/closed/a": .image(try ServerImages.encoded(.png)),
        ]
        try await ServerFixture.run(responses, change: { $0.sources.allowed = ["http://127.0.0.1:*/open/"] }) {
            fixture in
            #expect(try await fixture.image("w:5", "/open/a").status == 200)
            #expect(try await fixture.image("w:5", "/open/around").status == 200)
            for path in [
                "/closed/a", "/open/out", "/open/up", "/open", "/open/../closed/a", "/open/%2e%2e/closed/a", "//open/a",
            ] {
                let response = try await fixture.image("w:5", path)
                #expect(response.status == 404, "\(path)")
            }
            for source in [
                other.url("/a").absoluteString, "http://127.0.0.1:\(fixture.origin.port)@evil.example/open/a",
                "http://127.0.0.1\\@127.0.0.2:\(other.port)/open/", "local:///open/a", "s3://open/a", "file:///open/a",
            ] {
                #expect(try await fixture.response(to: "/unsafe/plain/\(source)").status == 404, "\(source)")
            }
            #expect(fixture.origin.requestCount(for: "/closed/a") == 0)
            #expect(other.connectionCount == 0)
        }
    }

    @Test func `without a permission, addresses of this machine and of private networks are not reached`() async throws
    {
        var configuration = ServerFixture.configuration()
        configuration.loader.downloads.networkPolicy = ImageServer.Configuration.loaderDefaults.downloads.networkPolicy
        let origin = try FaultyOrigin(["/a": .image(try ServerImages.encoded(.png))])
        let server = try await ImageServer.start(configuration)
        let client = try await ServerClient(to: server.address)
        var texts: Set<String> = []
        for trick in URLTrick.all {
            let encoded = Data(trick.text.utf8).base64EncodedString().replacing("+", with: "-").replacing(
                "/",
                with: "_"
            )
            let response = try await client.response(to: "/unsafe/\(encoded)")
            #expect(
                response.status == 404 || response.status == 502 || response.status == 422,
                "\(trick.text): \(response.status)"
            )
            texts.insert(response.text)
        }
        #expect(texts.isSubset(of: ["Source is unreachable\n", "Invalid source URL\n", "Invalid URL\n"]))
        #expect(try await client.response(to: "/unsafe/plain/\(origin.url("/a").absoluteString)").status != 200)
        #expect(origin.connectionCount == 0)
        await server.shutdown()
    }

    @Test func `a network refusal names the server's setting instead of the library's property`()
        async throws
    {
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.explainsErrors = true
            $0.loader.downloads.networkPolicy = ImageServer.Configuration.loaderDefaults.downloads.networkPolicy
        }
        try await ServerFixture.run(change: change) { fixture in
            for (source, advice) in [
                ("http://localhost/a", "localhost with --allow-network loopback."),
                ("http://images.internal/a", "names of local networks with --allow-network"),
                ("http://127.0.0.1/a", "permit it with --allow-network."),
                ("http://images.example:8080/a", "permit it with --allow-port."),
            ] {
                let text = try await fixture.response(to: "/unsafe/plain/\(source)").text
                #expect(text.contains(advice) && text.contains(". For this server: "), "\(text)")
                #expect(!text.contains("exceptions") && !text.contains("--allow "), "\(text)")
            }
        }
        // A redirect that no pattern allows needs another pattern.
        let responses: [String: FaultyResponse] = ["/a": .redirect(to: "/b")]
        let patterns: (inout ImageServer.Configuration) -> Void = {
            $0.explainsErrors = true
            $0.sources.allowed = ["http://127.0.0.1:*/a"]
        }
        try await ServerFixture.run(responses, change: patterns) { fixture in
            let text = try await fixture.image("w:5", "/a").text
            #expect(text.contains("add one with --allow") && !text.contains("--allow-network"), "\(text)")
        }
    }

    @Test func `redirects end`() async throws {
        var responses: [String: FaultyResponse] = ["/0": .image(try ServerImages.encoded(.png))]
        for number in 1...12 { responses["/\(number)"] = .redirect(to: "/\(number - 1)") }
        try await ServerFixture.run(responses) { fixture async throws in
            #expect(try await fixture.image("w:5", "/5").status == 200)
            #expect(try await fixture.image("w:5", "/6").status == 502)
            #expect(try await fixture.image("w:5", "/12").status == 502)
        }
        try await ServerFixture.run(responses, change: { $0.loader.downloads.maximumRedirects = 0 }) {
            fixture async throws in
            #expect(try await fixture.image("w:5", "/0").status == 200)
            #expect(try await fixture.image("w:5", "/1").status == 502)
        }
    }

    @Test func `files outside the local folder are not served`() async throws {
        let folder = try TemporaryDirectory()
        let png = try ServerImages.encoded(.png)
        for name in ["root/a.png", "root/dir/b c é.png", "root/a#.png", "root2/secret.png", "secret.png"] {
            try folder.write(png, to: name)
        }
        try FileManager.default.createSymbolicLink(
            atPath: folder.path(of: "root/link.png"),
            withDestinationPath: folder.path(of: "secret.png")
        )
        let change: (inout ImageServer.Configuration) -> Void = { $0.sources.localRoot = folder.url(of: "root") }
        try await ServerFixture.run(change: change) { fixture async throws in
            for path in ["a.png", "dir/b%20c%20%C3%A9.png", "a%23.png"] {
                #expect(try await fixture.response(to: "/unsafe/w:5/plain/local:///\(path)").status == 200, "\(path)")
            }
            for path in [
                "../secret.png", "%2e%2e/secret.png", "dir/../../secret.png", "..%2fsecret.png", "..%5csecret.png",
                "../root2/secret.png",
                "link.png", "dir", "", "a.png%00", "%2e%2e%2fsecret.png", "/etc/passwd", "dir/%252e%252e/a.png",
                "./a.png", "missing.png",
            ] {
                #expect(try await fixture.response(to: "/unsafe/w:5/plain/local:///\(path)").status == 404, "\(path)")
            }
        }
        try await ServerFixture.run { fixture async throws in
            #expect(try await fixture.response(to: "/unsafe/w:5/plain/local:///a.png").status == 404)
        }
    }

    // MARK: Hostile sources

    @Test func `a source with more bytes than the limit is not read to its end`() async throws {
        let flood = FaultyResponse([
            FaultyResponse.head(200, [("Content-Type", "image/png")]), .send(try ServerImages.encoded(.png)),
            .flood([UInt8](repeating: 0, count: 65_536)),
        ])
        let responses: [String: FaultyResponse] = [
            "/declared": .stall(declaredLength: 2_000_000), "/endless": flood,
        ]
        try await ServerFixture.run(responses, change: { $0.loader.downloads.maximumBodySize = 1_000_000 }) {
            fixture async throws in
            #expect(try await fixture.image("w:5", "/declared").status == 422)
            #expect(try await fixture.image("w:5", "/endless").status == 422)
            // The limit, and what the kernel holds.
            #expect(fixture.origin.floodedBytes < 32_000_000)
        }
    }

    @Test func `a source that declares too many pixels is refused before it is decoded`() async throws {
        let responses: [String: FaultyResponse] = [
            "/wide": .body(try Self.png(declaring: 20_000, 10)),
            "/large": .body(try Self.png(declaring: 16_000, 16_000)),
        ]
        try await ServerFixture.run(responses) { fixture async throws in
            #expect(try await fixture.image("w:5", "/wide").status == 422)
            #expect(try await fixture.image("w:5", "/large").status == 422)
            #expect(await fixture.statistics.decodes == 0)
        }
    }

    /// Returns a PNG whose header declares a wrong size.
    private static func png(declaring width: Int, _ height: Int) throws -> [UInt8] {
        var bytes = try ServerImages.encoded(.png, width: 8, height: 8)
        func big(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        bytes.replaceSubrange(16..<24, with: big(width) + big(height))
        let checksum = ~bytes[12..<29].reduce(UInt32.max) { checksum, byte in
            (0..<8).reduce(checksum ^ UInt32(byte)) { rest, _ in rest & 1 == 0 ? rest >> 1 : 0xEDB8_8320 ^ rest >> 1 }
        }
        bytes.replaceSubrange(29..<33, with: big(Int(checksum)))
        return bytes
    }

    @Test(arguments: ["raw:1", "skp:png:jpg:gif:webp", "w:5"])
    func `a source that is not an image is never served, not even unchanged`(options: String) async throws {
        let responses: [String: FaultyResponse] = [
            "/html": .body(Array("<html><script>alert(1)</script>".utf8), headers: [("Content-Type", "image/png")]),
            "/svg": .body(
                Array("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>".utf8),
                headers: [("Content-Type", "image/svg+xml")]
            ),
            "/text": .body(Array("internal secret".utf8)),
        ]
        try await ServerFixture.run(responses) { fixture in
            for path in responses.keys {
                let response = try await fixture.image(options, path)
                #expect(response.status == 422)
                #expect(!response.text.contains("alert") && !response.text.contains("secret"))
            }
        }
    }

    @Test func `a server does not start with authorities that certify nothing`() async throws {
        let folder = try TemporaryDirectory()
        var configuration = ServerFixture.configuration()
        for (path, words) in [
            (folder.path(of: "missing.pem"), "cannot be read: No such file or directory."),
            (try folder.write("no certificate".utf8, to: "text.pem"), "has no certificate"),
            (try folder.write([], to: "empty.pem"), "has no certificate"), (folder.path, "has no certificate"),
        ] {
            configuration.loader.downloads.tls.authorities = .file(path: path)
            let checked = configuration
            let error = await #expect(throws: SettingError.self) { try await ImageService.check(checked) }
            #expect(error?.message.contains("The file \(path) of authorities \(words)") == true, "\(error as Any)")
        }
        let origin = try FaultyOrigin([:], usesTLS: true)
        configuration.loader.downloads.tls.authorities = .file(path: try #require(origin.authorityPath))
        try await ImageService.check(configuration)
    }

    @Test func `a cache folder that cannot be made is named with the reason of the system`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write([], to: "file")
        for (path, reason) in [(file, "it is not a folder"), ("\(file)/cache", "Not a directory")] {
            var configuration = ServerFixture.configuration()
            configuration.loader.disk = DiskCache.Configuration(directory: URL(filePath: path))
            let checked = configuration
            let error = await #expect(throws: SettingError.self) { try await ImageServer.start(checked) }
            #expect(error?.message.contains("cannot be made: \(reason).") == true, "\(error as Any)")
        }
    }

    @Test func `a server that others can reach does not start without keys`() async throws {
        for address in ["0.0.0.0:0", ":0", "[::]:0"] {
            var configuration = ServerFixture.configuration()
            configuration.listenAddress = address
            await #expect(throws: SettingError.self, "\(address)") { try await ImageServer.start(configuration) }
            configuration.isInsecure = true
            await (try await ImageServer.start(configuration)).shutdown()
        }
    }
}

extension StringProtocol {
    /// Returns the text with the first occurrence of `part` replaced.
    fileprivate func replacingFirst(_ part: String, with other: String) -> String {
        var text = String(self)
        if let range = text.firstRange(of: part) { text.replaceSubrange(range, with: other) }
        return text
    }
}
