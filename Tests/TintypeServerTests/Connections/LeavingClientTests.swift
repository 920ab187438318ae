// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// Clients that close their connection, or one half of it.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LeavingClientTests {
    private let gate = Gate()

    /// Scripts of one answer that is ready, and of one that waits until its task is cancelled.
    private var scripts: [String: ScriptedHandler.Script] {
        [
            "/ready": .text("ready"),
            "/waiting": .waiting { [gate] _ in
                try? await gate.waitUnlessCancelled()
                return .text(200, "waiting")
            },
        ]
    }

    @Test(arguments: [false, true])
    func `the task of a client that leaves is cancelled`(resetting: Bool) async throws {
        try await ScriptedServer.run(self.scripts) { server in
            let client = try await server.client()
            await client.request("/waiting")
            await until { server.handler.waitingCount == 1 }
            #expect(await server.connections.counters.waitingRequests == 1)
            await client.close(resetting: resetting)
            await until { server.handler.cancelledCount == 1 }
            await until { server.handler.statuses == [499] }
            let counters = await server.connections.counters
            #expect((counters.leftRequests, counters.waitingRequests, counters.openConnections) == (1, 0, 0))
        }
    }

    @Test func `hundreds of clients that leave are all noticed`() async throws {
        try await ScriptedServer.run(self.scripts) { server in
            let executor = ThreadExecutor(name: "clients")
            var clients: [ServerClient] = []
            for _ in 0..<500 { clients.append(try await ServerClient(to: server.address, on: executor)) }
            for client in clients { await client.request("/waiting") }
            await until { server.handler.waitingCount == 500 }
            for client in clients { await client.close() }
            await until { server.handler.cancelledCount == 500 }
            await until { await server.connections.counters.openConnections == 0 }
            #expect(await server.connections.counters.leftRequests == 500)
            clients = []
            executor.shutdown()
        }
    }

    @Test func `a client that has closed its half receives ready answers, and the end`() async throws {
        try await ScriptedServer.run(self.scripts) { server in
            let client = try await server.client()
            await client.request("/ready")
            await client.request("/ready")
            await client.halfClose()
            #expect(try await client.receive().text == "ready")
            #expect(try await client.receive().text == "ready")
            #expect(try await client.receiveToEnd().isEmpty)
        }
    }

    @Test func `a client that has closed its half and waits counts as gone`() async throws {
        try await ScriptedServer.run(self.scripts) { server in
            let client = try await server.client()
            await client.request("/waiting")
            await client.halfClose()
            #expect(try await client.receiveToEnd().isEmpty)
            await until { server.handler.statuses == [499] }
        }
    }

    @Test func `requests behind one that waits do not hide that the client leaves`() async throws {
        try await ScriptedServer.run(self.scripts) { server in
            let client = try await server.client()
            await client.request("/waiting")
            await until { server.handler.waitingCount == 1 }
            await client.send(String(repeating: "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n", count: 1_000))
            await client.close()
            await until { server.handler.cancelledCount == 1 }
            await until { await server.connections.counters.openConnections == 0 }
        }
    }

    @Test(arguments: ["", "GET /ready HT"])
    func `the connection of a client that leaves in a head or in an answer ends`(text: String) async throws {
        try await ScriptedServer.run(self.scripts) { server in
            let client = try await server.client()
            await client.send(text)
            await until { await server.connections.counters.openConnections == 1 }
            await client.close()
            await until { await server.connections.counters.openConnections == 0 }
            #expect(server.handler.records.isEmpty)
        }
    }
}
