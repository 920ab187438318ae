// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestTraits

@testable import TintypeServer

/// The names to which a server answers: no page of another site may read its images through a name of that site.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ServedHostTests {
    private func status(
        _ target: String,
        host: String?,
        version: String = "1.1",
        of fixture: ServerFixture
    ) async throws -> Int {
        let client = try await ServerClient(to: fixture.server.address)
        await client.send("GET \(target) HTTP/\(version)\r\n\(host.map { "Host: \($0)\r\n" } ?? "")\r\n")
        return try await client.receive().status
    }

    private func run(
        change: (inout ImageServer.Configuration) throws -> Void = { _ in },
        _ body: (ServerFixture) async throws -> Void
    ) async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png))], change: change, body)
    }

    private static let own = ["localhost", "LocalHost:1", "127.0.0.1", "127.1.2.3:8080", "[::1]", "[::1]:80"]
    private static let foreign = [
        "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.1", "[::2]",
        "127.evil", "127.1",
    ]

    @Test func `a server without keys on a loopback address answers to its own names only`() async throws {
        try await self.run { fixture async throws in
            let target = fixture.target("w:50", "/a")
            for host in Self.own { #expect(try await self.status(target, host: host, of: fixture) == 200, "\(host)") }
            for host in Self.foreign {
                for target in [target, "/", "/info\(target)", "/favicon.ico", "/purge"] {
                    #expect(try await self.status(target, host: host, of: fixture) == 421, "\(host) \(target)")
                }
                for target in ["/health", "/ready", "/metrics"] {
                    #expect(try await self.status(target, host: host, of: fixture) == 200, "\(host) \(target)")
                }
            }
            // An absolute URL has precedence over the Host field.
            #expect(try await self.status("http://evil.example\(target)", host: "localhost", of: fixture) == 421)
            #expect(try await self.status(target, host: nil, version: "1.0", of: fixture) == 200)
        }
    }

    @Test func `a body that is sent to a foreign name is refused before it is received`() async throws {
        try await self.run(change: { $0.showsPage = true }) { fixture async throws in
            let client = try await ServerClient(to: fixture.server.address)
            await client.send("POST /sign HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n")
            let response = try await client.receive()
            #expect(response.status == 421 && response["Connection"] == "close")
        }
    }

    @Test func `a server answers to the names that it was given, with keys as well`() async throws {
        try await self.run(change: { $0.hosts = ["Images.test", "[fd00::1]"] }) { fixture async throws in
            let target = fixture.target("w:50", "/a")
            for host in Self.own + ["images.test", "IMAGES.test:443", "[fd00::1]:80"] {
                #expect(try await self.status(target, host: host, of: fixture) == 200, "\(host)")
            }
            for host in Self.foreign + ["a.images.test", "images.test.", "[fd00::2]"] {
                #expect(try await self.status(target, host: host, of: fixture) == 421, "\(host)")
            }
        }
        let key = try SignatureKey(key: "00ff10", salt: "00")
        try await self.run(change: { $0.addresses.keys = [key] }) { fixture async throws in
            #expect(try await self.status(fixture.target("w:50", "/a"), host: "evil.example", of: fixture) == 403)
        }
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.addresses.keys = [key]
            $0.hosts = ["images.test"]
        }
        try await self.run(change: change) { fixture async throws in
            #expect(try await self.status(fixture.target("w:50", "/a"), host: "evil.example", of: fixture) == 421)
            #expect(try await self.status(fixture.target("w:50", "/a"), host: "images.test", of: fixture) == 403)
        }
    }

    @Test func `by default, only a server without keys on a loopback address checks names`() throws {
        var configuration = ImageServer.Configuration()
        #expect(configuration.allowedHosts != nil)
        configuration.listenAddress = ":8080"
        configuration.isInsecure = true
        #expect(configuration.allowedHosts == nil)
        configuration.hosts = ["images.test"]
        #expect(configuration.allowedHosts?.contains("evil.example") == false)
    }

    @Test(arguments: [
        "", "a.test:80", "http://a.test", "a.test/b", "*.a.test", "a b", "é.test", "[a]", "::1", "[::1]:80",
    ])
    func `a name that no Host field can have is refused`(name: String) {
        var configuration = ImageServer.Configuration()
        configuration.hosts = [name]
        #expect(throws: SettingError.self) { try configuration.check() }
    }
}
