// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The bodies of requests.
@Suite(.waiting, .timeLimit(.minutes(5))) struct RequestBodyTests {
    private static let echo: [String: ScriptedHandler.Script] = [
        "/waiting": .waiting { .text(200, String(decoding: $0.body, as: UTF8.self)) },
        "/ready": .ready { .text(200, String(decoding: $0.body, as: UTF8.self)) },
    ]

    private static func post(_ target: String, _ length: Int, _ fields: String = "") -> String {
        "POST \(target) HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\(fields)\r\n"
    }

    @Test(arguments: ["/ready", "/waiting"])
    func `a body is read to its end, and the next request begins behind it`(target: String) async throws {
        try await ScriptedServer.run(Self.echo, bodyLimit: 1_000) { server in
            let client = try await server.client()
            await client.send(Self.post(target, 5) + "hello" + Self.post(target, 3) + "you" + Self.post(target, 0))
            #expect(try await client.receive().text == "hello")
            #expect(try await client.receive().text == "you")
            #expect(try await client.receive().text.isEmpty)
        }
    }

    @Test(arguments: [1, 7, 5_000, 300_000])
    func `a body may come in pieces of any size`(size: Int) async throws {
        let length = size < 10 ? 200 : 300_000
        let body = (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) }
        try await ScriptedServer.run(Self.echo, bodyLimit: length) { server in
            let client = try await server.client()
            let bytes = Array(Self.post("/waiting", length).utf8) + body + Array(Self.post("/ready", 1).utf8) + [0x78]
            for start in stride(from: 0, to: bytes.count, by: size) {
                await client.send(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(try await client.receive().body == body)
            #expect(try await client.receive().text == "x")
        }
    }

    @Test func `a client that expects 100 Continue receives it`() async throws {
        try await ScriptedServer.run(Self.echo, bodyLimit: 1_000) { server in
            let client = try await server.client()
            for _ in 0..<2 {
                await client.send(Self.post("/ready", 5, "Expect: 100-continue\r\n"))
                #expect(try await client.receive().status == 100)
                await client.send("hello")
                let response = try await client.receive()
                #expect(response.status == 200 && response.text == "hello")
            }
        }
    }

    @Test func `a body that is too large is refused before it is sent`() async throws {
        try await ScriptedServer.run(Self.echo, bodyLimit: 10) { server in
            for fields in ["", "Expect: 100-continue\r\n"] {
                let client = try await server.client()
                await client.send(Self.post("/ready", 11, fields))
                let response = try await client.receive()
                #expect(response.status == 413)
                #expect(response["Connection"] == "close")
                #expect(try await client.receiveToEnd().isEmpty)
            }
        }
    }

    @Test func `a body that the handler refuses is not received`() async throws {
        try await ScriptedServer.run(Self.echo, bodyLimit: 1_000) { server in
            let client = try await server.client()
            await client.send(Self.post("/forbidden", 1_000, "Expect: 100-continue\r\n"))
            let response = try await client.receive()
            #expect((response.status, response["Connection"]) == (403, "close"))
            #expect(try await client.receiveToEnd().isEmpty)
        }
    }

    @Test func `a body where there must be none is refused, and is not the next request`() async throws {
        try await ScriptedServer.run(Self.echo) { server in
            let client = try await server.client()
            let smuggled = "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n"
            await client.send(
                "GET /ready HTTP/1.1\r\nHost: a\r\nContent-Length: \(smuggled.utf8.count)\r\n\r\n" + smuggled
            )
            let response = try await client.receive()
            #expect(response.status == 400)
            #expect(response["Connection"] == "close")
            #expect(try await client.receiveToEnd().isEmpty)
        }
    }

    @Test func `a client that leaves within its body is forgotten`() async throws {
        try await ScriptedServer.run(Self.echo, bodyLimit: 1_000) { server in
            let client = try await server.client()
            await client.send(Self.post("/ready", 100) + "hello")
            await until { await server.connections.counters.openConnections == 1 }
            await client.close()
            await until { await server.connections.counters.openConnections == 0 }
        }
    }

    @Test func `slow large bodies leave room for short ones, but not for more large ones`() async throws {
        let length = 100_000
        try await ScriptedServer.run(Self.echo, bodyLimit: length, limits: { $0.bodyByteCount = length }) { server in
            let slow = try await server.client()
            await slow.send(Self.post("/ready", length, "Expect: 100-continue\r\n"))
            #expect(try await slow.receive().status == 100)
            let other = try await server.client()
            await other.send(Self.post("/ready", length))
            #expect(try await other.receive().status == 503)
            let short = try await server.client()
            await short.send(Self.post("/ready", 5) + "hello")
            #expect(try await short.receive().text == "hello")
            await slow.close()
            await until { await server.connections.counters.openConnections == 1 }
            let next = try await server.client()
            await next.send(Self.post("/ready", length, "Expect: 100-continue\r\n"))
            #expect(try await next.receive().status == 100)
        }
    }
}
