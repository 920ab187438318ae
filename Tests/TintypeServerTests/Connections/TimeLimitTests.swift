// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The time limits of connections, which the server checks four times a second.
@Suite(.waiting, .timeLimit(.minutes(5))) struct TimeLimitTests {
    private static let short: Duration = .milliseconds(300)

    @Test func `a head that comes byte by byte gains no time`() async throws {
        try await ScriptedServer.run(["/a": .text("a")], limits: { $0.headTime = .seconds(1) }) { server in
            let client = try await server.client()
            let head = Array("GET /a HTTP/1.1\r\nHost: a\r\nX-Long: \(String(repeating: "x", count: 8_000))".utf8)
            let count = await client.drip(head, milliseconds: 20)
            #expect(count < head.count)
            let response = try await client.receive()
            #expect(response.status == 408)
            #expect(response["Connection"] == "close")
            await client.close()
            await until { server.handler.statuses == [408] }
            #expect(await server.connections.counters.expiredConnections == 1)
        }
    }

    @Test func `the time for a head begins anew with each request`() async throws {
        try await ScriptedServer.run(["/a": .text("a")], limits: { $0.headTime = .seconds(1) }) { server in
            let client = try await server.client()
            #expect(try await client.response(to: "/a").text == "a")
            // With the last request comes the beginning of the next one.
            await client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /a HT")
            #expect(try await client.receive().text == "a")
            #expect(try await client.receive().status == 408)
            #expect(try await client.receiveToEnd().isEmpty)
        }
    }

    @Test func `a connection without a request is closed without a word`() async throws {
        try await ScriptedServer.run(limits: { $0.headTime = .seconds(1) }) { server async throws in
            #expect(try await server.client().receiveToEnd().isEmpty)
            #expect(server.handler.records.isEmpty)
        }
    }

    @Test func `an idle connection is closed without a word`() async throws {
        try await ScriptedServer.run(["/a": .text("a")], limits: { $0.idleTime = Self.short }) { server in
            let client = try await server.client()
            #expect(try await client.response(to: "/a").text == "a")
            #expect(try await client.receiveToEnd().isEmpty)
            #expect(server.handler.statuses == [200])
            await until { await server.connections.counters.openConnections == 0 }
        }
    }

    @Test func `a client that reads nothing is ended`() async throws {
        let body = Data(repeating: 7, count: 64 << 20)
        let script = ScriptedHandler.Script.ready { _ in
            var head = AnswerHead(status: 200)
            head.fields.append(body.count, for: "Content-Length")
            return ServerAnswer(head, body: .data(body))
        }
        try await ScriptedServer.run(["/a": script], limits: { $0.progressTime = Self.short }) { server in
            let client = try await server.client(bufferSize: 4_096)
            await client.request("/a")
            await until { await server.connections.counters.expiredConnections == 1 }
            let record = try #require(server.handler.records.first)
            #expect(record.status == 200 && !record.isWhole && record.sentByteCount < body.count)
            #expect(await server.connections.counters.openConnections == 0)
        }
    }

    @Test func `a client that reads less than the minimum is ended, although it makes progress`() async throws {
        let body = Data(repeating: 7, count: 64 << 20)
        let script = ScriptedHandler.Script.ready { _ in
            var head = AnswerHead(status: 200)
            head.fields.append(body.count, for: "Content-Length")
            return ServerAnswer(head, body: .data(body))
        }
        // The minimum is more than the kernel takes at first, so that the test does not depend on its buffers.
        let limits: (inout ConnectionActor.Limits) -> Void = {
            $0.progressTime = Self.short
            $0.minimumByteCount = 32 << 20
        }
        try await ScriptedServer.run(["/a": script], limits: limits) { server in
            let client = try await server.client(bufferSize: 4_096)
            await client.request("/a")
            await until { await server.connections.counters.expiredConnections == 1 }
            #expect(server.handler.records.first?.isWhole == false)
        }
    }

    @Test func `a body that stops is ended`() async throws {
        try await ScriptedServer.run(["/a": .text("a")], bodyLimit: 1_000, limits: { $0.progressTime = Self.short }) {
            server in
            let client = try await server.client()
            await client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n0123456789")
            #expect(try await client.receiveToEnd().isEmpty)
            #expect(await server.connections.counters.expiredConnections == 1)
        }
    }

    @Test func `an answer that takes too long becomes 503, its task is cancelled, and the connection goes on`()
        async throws
    {
        let gate = Gate()
        let scripts: [String: ScriptedHandler.Script] = [
            "/slow": .waiting { _ in
                do {
                    try await gate.waitUnlessCancelled()
                    return .text(200, "slow")
                } catch {
                    return .text(500, "cancelled")
                }
            },
            "/a": .text("a"),
        ]
        try await ScriptedServer.run(scripts, limits: { $0.answerTime = Self.short }) { server in
            let client = try await server.client()
            #expect(try await client.response(to: "/slow").status == 503)
            await until { server.handler.cancelledCount == 1 }
            #expect(try await client.response(to: "/a").text == "a")
            await until { server.handler.statuses == [503, 200] }
            #expect(await server.connections.counters.waitingRequests == 0)
        }
    }

    @Test func `the late answer to a request that took too long is not the answer to the next one`() async throws {
        let (late, current) = (Gate(), Gate())
        let scripts: [String: ScriptedHandler.Script] = [
            "/late": .text("late", after: late), "/current": .text("current", after: current),
        ]
        try await ScriptedServer.run(scripts, limits: { $0.answerTime = .seconds(1) }) { server in
            let client = try await server.client()
            let expired = try await client.response(to: "/late")
            #expect(expired.status == 503)
            // A server may close the connection to keep the answers apart.
            guard expired["Connection"] != "close", await client.request("/current") else { return }
            await until { server.handler.waitingCount == 2 }
            await late.open()
            // The task of the late answer has ended when the loop has made another answer.
            for _ in 0..<20 { _ = try await server.client().response(to: "/none") }
            await current.open()
            let next = try await client.receive()
            #expect(next.text == "current" || next.status == 503)
        }
    }
}
