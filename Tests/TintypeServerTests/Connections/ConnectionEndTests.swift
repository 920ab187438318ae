// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The ends of connections and of the server, and servers that have no room for more connections.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ConnectionEndTests {
    // MARK: Refused requests

    @Test func `a client that still sends does not lose the answer that refuses its request`() async throws {
        try await ScriptedServer.run { server in
            let client = try await server.client()
            await client.send("BROKEN\r\n\r\n")
            // More than the buffers of both sockets: the server must read it.
            await client.send([UInt8](repeating: 0x78, count: 16 << 20))
            #expect(try await client.receive().status == 400)
            #expect(try await client.receiveToEnd().isEmpty)
        }
    }

    @Test func `a refused client that never stops sending is cut off, and others are served meanwhile`() async throws {
        try await ScriptedServer.run(["/a": .text("a")]) { server in
            let flooding = try await server.client()
            await flooding.send("BROKEN\r\n\r\n")
            let flood = Task { await flooding.flood([UInt8](repeating: 0x78, count: 4 << 20)) }
            let client = try await server.client()
            for _ in 0..<50 { #expect(try await client.response(to: "/a").text == "a") }
            _ = await flood.value
            await until { await server.connections.counters.openConnections == 1 }
        }
    }

    // MARK: Shutdown

    @Test func `a shutdown finishes answers that have begun, and closes idle connections`() async throws {
        let gate = Gate()
        try await ScriptedServer.run(["/a": .text("a"), "/slow": .text("slow", after: gate)]) { server in
            let (idle, busy) = (try await server.client(), try await server.client())
            #expect(try await idle.response(to: "/a").text == "a")
            await busy.request("/slow")
            await busy.request("/a")
            await until { server.handler.waitingCount == 1 }
            let shutdown = Task { await server.connections.shutdown(within: .seconds(60)) }
            #expect(try await idle.receiveToEnd().isEmpty)
            await #expect(throws: TestSupportError.self) { try await server.client() }
            await gate.open()
            let response = try await busy.receive()
            #expect(response.text == "slow")
            #expect(response["Connection"] == "close")
            #expect(try await busy.receiveToEnd().isEmpty)
            await shutdown.value
            #expect(await server.connections.counters.openConnections == 0)
        }
    }

    @Test func `a shutdown answers a request whose head has begun`() async throws {
        try await ScriptedServer.run(["/a": .text("a")]) { server in
            let client = try await server.client()
            await client.send("GET /a HTTP/1.1\r\nHo")
            let turns = server.handler.turnCount
            await until { server.handler.turnCount > turns + 1 }
            let shutdown = Task { await server.connections.shutdown(within: .seconds(60)) }
            await until { (try? await server.client()) == nil }
            await client.send("st: a\r\n\r\n")
            #expect(try await client.receive().text == "a")
            await shutdown.value
        }
    }

    @Test func `a shutdown cancels requests that take too long`() async throws {
        let gate = Gate()
        try await ScriptedServer.run(["/slow": .text("slow", after: gate)]) { server in
            let client = try await server.client()
            await client.request("/slow")
            await until { server.handler.waitingCount == 1 }
            await server.connections.shutdown(within: .milliseconds(100))
            #expect(try await client.receiveToEnd().isEmpty)
            #expect(server.handler.cancelledCount == 1)
            await gate.open()
        }
    }

    @Test func `a request that the kernel holds when the shutdown begins is answered`() async throws {
        let (isHeld, hold) = (Latch(), Latch())
        let scripts: [String: ScriptedHandler.Script] = [
            "/a": .text("a"),
            "/hold": .ready { _ in
                isHeld.open()
                hold.wait()
                return .text(200, "held")
            },
        ]
        try await ScriptedServer.run(scripts) { server in
            // The loop stands still until the latch opens, with a request of another client in the kernel.
            let (holding, client) = (try await server.client(), try await server.client())
            #expect(try await client.response(to: "/a").text == "a")
            await holding.request("/hold")
            await until { isHeld.isOpen }
            await client.request("/a")
            let shutdown = Task.immediate { await server.connections.shutdown(within: .seconds(60)) }
            hold.open()
            #expect(try await holding.receive().text == "held")
            #expect(try await client.receive().text == "a")
            await shutdown.value
        }
    }

    // MARK: Room

    /// An answer that is the same bytes for all clients.
    private static func text(_ count: Int) -> ScriptedHandler.Script {
        let answer = ServerAnswer.text(200, String(repeating: "x", count: count))
        return .ready { _ in answer }
    }

    @Test func `with more connections than the limit, the one that has waited longest for a request ends`() async throws
    {
        try await ScriptedServer.run(["/a": .text("a")], limits: { $0.connectionCount = 2 }) { server in
            let (first, second) = (try await server.client(), try await server.client())
            for client in [first, second] { #expect(try await client.response(to: "/a").text == "a") }
            #expect(try await second.response(to: "/a").text == "a")
            let third = try await server.client()
            #expect(try await third.response(to: "/a").text == "a")
            #expect(try await second.response(to: "/a").text == "a")
            #expect(await server.connections.counters.acceptedConnections == 3)
            #expect(await server.connections.counters.openConnections == 2)
        }
    }

    @Test func `a new connection that has not sent a request yet does not end before older idle ones`() async throws {
        try await ScriptedServer.run(["/a": .text("a")], limits: { $0.connectionCount = 3 }) { server in
            var old: [ServerClient] = []
            for _ in 0..<3 {
                old.append(try await server.client())
                #expect(try await old.last?.response(to: "/a").text == "a")
            }
            var new: [ServerClient] = []
            for count in 4...5 {
                new.append(try await server.client())
                await until { await server.connections.counters.acceptedConnections == count }
            }
            for client in new + old.suffix(1) { #expect(try await client.response(to: "/a").text == "a") }
            for client in old.prefix(2) { #expect(try await client.receiveToEnd().isEmpty) }
            // All connections have served a request meanwhile, so the server searches them again.
            let next = try await server.client()
            #expect(try await next.response(to: "/a").text == "a")
            #expect(try await new[0].receiveToEnd().isEmpty)
        }
    }

    @Test func `a new connection takes the place of the one whose head has been incomplete for longest`() async throws {
        try await ScriptedServer.run(["/a": .text("a")], limits: { $0.connectionCount = 2 }) { server in
            let slow = [try await server.client(), try await server.client()]
            for client in slow { await client.send("GET /a HTTP/1.1\r\nHost:") }
            // The kernel has the connection at once. The server accepts it when a head has taken a second.
            let client = try await server.client()
            #expect(try await client.response(to: "/a").text == "a")
            await slow[1].send(" a\r\n\r\n")
            #expect(try await slow[1].receive().text == "a")
            #expect(try await slow[0].receiveToEnd().isEmpty)
        }
    }

    @Test func `the connections that share a body are closed together or not at all`() async throws {
        let scripts = ["/shared": Self.text(8 << 20), "/single": Self.text(8 << 20), "/last": Self.text(8 << 20)]
        try await ScriptedServer.run(scripts, limits: { $0.unsentByteCount = 20 << 20 }) { server in
            // One of the two that share a body takes more of it than the client of the other body does.
            let fast = try await server.client(bufferSize: 1 << 20)
            let (slow, single) = (
                try await server.client(bufferSize: 4_096), try await server.client(bufferSize: 4_096)
            )
            await single.request("/single")
            for client in [fast, slow] { await client.request("/shared") }
            let last = try await server.client(bufferSize: 1 << 20)
            await last.request("/last")
            await until { await server.connections.counters.expiredConnections > 0 }
            #expect(await server.connections.counters.expiredConnections == 1)
            for client in [fast, slow, last] { #expect(try await client.receive().body.count == 8 << 20) }
        }
    }

    @Test func `with too many unsent bytes, the server closes the slowest connections and serves the others`()
        async throws
    {
        let scripts = ["/large": Self.text(12 << 20), "/small": Self.text(8 << 20), "/a": Self.text(1)]
        try await ScriptedServer.run(scripts, limits: { $0.unsentByteCount = 16 << 20 }) { server in
            let (large, small) = (
                try await server.client(bufferSize: 4_096), try await server.client(bufferSize: 4_096)
            )
            // A body that several clients receive counts once.
            let others = [try await server.client(bufferSize: 4_096), try await server.client(bufferSize: 4_096)]
            for client in [large] + others { await client.request("/large") }
            #expect(try await server.client().response(to: "/a").status == 200)
            #expect(await server.connections.counters.expiredConnections == 0)
            await small.request("/small")
            await until { await server.connections.counters.expiredConnections == 3 }
            #expect(try await server.client().response(to: "/a").status == 200)
            #expect(try await small.receive().body.count == 8 << 20)
        }
    }

    @Test func `a server without descriptors serves its connections, and accepts others later`() async {
        await #expect(processExitsWith: .success) {
            try await ScriptedServer.run(["/a": .text("a")]) { server in
                let first = try await server.client()
                _ = try await first.response(to: "/a")
                let second = try await ProcessLimit.withOneDescriptor {
                    let second = try await server.client()
                    await second.request("/a")
                    for _ in 0..<20 { try #require(try await first.response(to: "/a").text == "a") }
                    try #require(await server.connections.counters.acceptedConnections == 1)
                    return second
                }
                try #require(try await second.receive().text == "a")
            }
        }
    }

    // MARK: Addresses

    @Test(arguments: ["", "a", "127.0.0.1", "::1:80"])
    func `an address that cannot be listened on is an error that names it`(address: String) async {
        let error = await #expect(throws: ListenError.self) {
            try await ConnectionActor.start(at: address, handler: ScriptedHandler())
        }
        #expect(error?.description.contains(address) == true)
    }

    @Test func `a port in use is an error`() async throws {
        try await ScriptedServer.run { server in
            let error = await #expect(throws: ListenError.self) {
                try await ConnectionActor.start(at: server.address, handler: ScriptedHandler())
            }
            #expect(error?.description.contains("in use") == true)
        }
    }
}
