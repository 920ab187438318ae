// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// Persistent connections, and the answers on them.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ConnectionAnswerTests {
    /// More bytes than the buffers of two sockets hold; each of its lines is another one.
    private static let large = Array((0..<400_000).lazy.map { "\(100_000_000 + $0) bytes\n" }.joined().utf8)

    @Test(.enabled(if: ThisProcess.mayRaisePriority, "the system gives no right to raise priorities"))
    func `the thread that serves connections has a nice value 5 below the others`() async throws {
        try await ScriptedServer.run { server in
            #expect(await server.connections.niceValue == ThisProcess.usualNiceValue - 5)
        }
    }

    @Test func `one connection carries many requests`() async throws {
        try await ScriptedServer.run(["/a": .text("first"), "/b": .text("second")]) { server in
            let client = try await server.client()
            for _ in 0..<3 {
                let first = try await client.response(to: "/a")
                #expect(first.text == "first")
                #expect(first["Connection"] == nil)
                #expect(first["Date"] != nil)
                #expect(first["Server"] == "tintype")
                #expect(try await client.response(to: "/b").text == "second")
            }
            #expect(await server.connections.counters.acceptedConnections == 1)
            #expect(server.handler.statuses.allSatisfy { $0 == 200 })
            #expect(server.handler.records.allSatisfy { $0.isWhole && $0.client.description == "127.0.0.1" })
        }
    }

    @Test func `the table of descriptors has room for all connections from the start`() async throws {
        // In a process of its own, no other test enlarges the table.
        await #expect(processExitsWith: .success) {
            let room = ThisProcess.descriptorRoom
            precondition(room > 0)
            try await ScriptedServer.run([:], limits: { $0.connectionCount = 2 * room }) { _ in
                precondition(ThisProcess.descriptorRoom >= 2 * room)
            }
        }
    }

    @Test func `a server with few descriptors keeps some of them for files and origins`() async throws {
        await #expect(processExitsWith: .success) {
            var limit = rlimit(rlim_cur: 256, rlim_max: 256)
            precondition(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
            let listener = try ListeningSocket("127.0.0.1:0")
            precondition(listener.reserveDescriptors(20_000) == 192)
            precondition(listener.reserveDescriptors(100) == 100)
        }
    }

    @Test func `pipelined answers come in the order of the requests, whether they are ready or waited for`()
        async throws
    {
        let (first, second) = (Gate(), Gate())
        let scripts: [String: ScriptedHandler.Script] = [
            "/1": .text("1"), "/2": .text("2", after: first), "/3": .text("3"), "/4": .text("4", after: second),
            "/5": .text("5"),
        ]
        try await ScriptedServer.run(scripts) { server in
            let client = try await server.client()
            await client.send((1...5).map { "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())
            #expect(try await client.receive().text == "1")
            await until { server.handler.waitingCount == 1 }
            // The answer to the fourth request must not overtake the second one.
            await second.open()
            await first.open()
            for text in ["2", "3", "4", "5"] { #expect(try await client.receive().text == text) }
        }
    }

    @Test func `hundreds of requests in one piece are all answered`() async throws {
        try await ScriptedServer.run(["/a": .text("a")]) { server in
            let client = try await server.client()
            let other = try await server.client()
            await client.send(String(repeating: "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", count: 500))
            #expect(try await other.response(to: "/a").text == "a")
            for _ in 0..<500 { #expect(try await client.receive().text == "a") }
            #expect(try await client.response(to: "/a").status == 200)
        }
    }

    @Test func `requests that come byte by byte are answered like others`() async throws {
        try await ScriptedServer.run(["/a": .text("a")]) { server in
            let client = try await server.client()
            let request = Array("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
            for byte in request + request { await client.send([byte]) }
            #expect(try await client.receive().text == "a")
            #expect(try await client.receive().text == "a")
        }
    }

    @Test func `the answer to HEAD has the fields of GET and no body`() async throws {
        let scripts: [String: ScriptedHandler.Script] = [
            "/ready": .text("twelve bytes"), "/waiting": .waiting { _ in .text(200, "twelve bytes") },
        ]
        try await ScriptedServer.run(scripts) { server in
            let client = try await server.client()
            for target in ["/ready", "/waiting"] {
                let head = try await client.response(to: target, method: "HEAD")
                #expect(head["Content-Length"] == "12")
                #expect(head["Content-Type"] == "text/plain; charset=utf-8")
                // A body would be taken for the next response.
                #expect(try await client.response(to: target).text == "twelve bytes")
            }
            await until { server.handler.records.map(\.sentByteCount) == [0, 12, 0, 12] }
        }
    }

    @Test(arguments: [
        ("1.0", "", false), ("1.0", "Connection: keep-alive\r\n", true), ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false), ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
    ])
    func `a connection persists as the version and the fields of the request say`(
        version: String,
        fields: String,
        persists: Bool
    ) async throws {
        try await ScriptedServer.run(["/a": .text("a")]) { server in
            let client = try await server.client()
            let request = "GET /a HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n"
            await client.send(request)
            let response = try await client.receive()
            #expect(response.text == "a")
            #expect(response["Connection"] == (persists ? (version == "1.0" ? "keep-alive" : nil) : "close"))
            if persists {
                await client.send(request)
                #expect(try await client.receive().text == "a")
            } else {
                #expect(try await client.receiveToEnd().isEmpty)
            }
        }
    }

    @Test(arguments: UInt64(1)...8)
    func `answers keep the order of their requests in any mix of splits and waits`(seed: UInt64) async throws {
        var scripts: [String: ScriptedHandler.Script] = [:]
        for number in 0..<10 {
            scripts["/ready\(number)"] = .text("/ready\(number)")
            scripts["/waiting\(number)"] = .waiting { _ in
                for _ in 0..<number { await Task.yield() }
                return .text(200, "/waiting\(number)")
            }
        }
        try await ScriptedServer.run(scripts) { server in
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<10 {
                let client = try await server.client()
                let targets = (0..<Int.random(in: 1...40, using: &generator)).map { _ in
                    (Bool.random(using: &generator) ? "/ready" : "/waiting")
                        + "\(Int.random(in: 0..<10, using: &generator))"
                }
                var rest = Array(targets.map { "GET \($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined().utf8)[...]
                while !rest.isEmpty {
                    let piece = rest.prefix(Int.random(in: 1...200, using: &generator))
                    await client.send(Array(piece))
                    rest = rest.dropFirst(piece.count)
                }
                for target in targets { #expect(try await client.receive().text == target) }
                await client.close()
            }
            await until { await server.connections.counters.openConnections == 0 }
        }
    }

    @Test func `a part of a body in memory is a copy, which does not keep the whole body alive`() throws {
        let whole = Data(repeating: 1, count: 1 << 20)
        let body = ServerAnswer.Body.data(whole[10...]).part(ByteRange(offset: 5, length: 1 << 16))
        guard case .data(let part) = body else { throw TestSupportError("The part is not in memory.") }
        #expect(part == whole[15..<15 + (1 << 16)])
        let (start, end) = whole.withUnsafeBytes { (UInt(bitPattern: $0.baseAddress), UInt($0.count)) }
        #expect(!(start..<start + end).contains(part.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }))
    }

    @Test func `an answer larger than the buffers of sockets arrives whole, while others are served`() async throws {
        let body = Data(Self.large)
        let scripts: [String: ScriptedHandler.Script] = [
            "/large": .ready { _ in
                var head = AnswerHead(status: 200)
                head.fields.append(body.count, for: "Content-Length")
                return ServerAnswer(head, body: .data(body))
            },
            "/small": .text("small"),
        ]
        try await ScriptedServer.run(scripts) { server in
            let clients = [try await server.client(bufferSize: 4_096), try await server.client()]
            for client in clients {
                await client.request("/large")
                // Behind it, so that the connection goes on from where it was blocked.
                await client.request("/small")
            }
            #expect(try await server.client().response(to: "/small").text == "small")
            for client in clients {
                let response = try await client.receive()
                #expect(response.body == Self.large)
                #expect(try await client.receive().text == "small")
            }
        }
    }

    @Test func `a slice of bytes is sent from its start to its end`() async throws {
        let body = Data(Self.large)[1_000..<3_000_000]
        let script = ScriptedHandler.Script.ready { _ in
            var head = AnswerHead(status: 200)
            head.fields.append(body.count, for: "Content-Length")
            return ServerAnswer(head, body: .data(body))
        }
        try await ScriptedServer.run(["/a": script]) { server async throws in
            #expect(try await server.client(bufferSize: 4_096).response(to: "/a").body == Array(body))
        }
    }

    @Test(arguments: [
        ("abc-DEF_123", true), (String(repeating: "x", count: 64), true),
        (String(repeating: "x", count: 65), false),
        ("", false), ("a b", false), ("a\u{E9}", false), ("a;b", false), ("<script>", false), ("a:b", false),
    ])
    func `the identifier of a request is echoed if it is plain, and replaced otherwise`(
        text: String,
        isEchoed: Bool
    ) async throws {
        try await ScriptedServer.run(["/a": .text("a")]) { server in
            let client = try await server.client()
            let identifier = try #require(try await client.response(to: "/a", ["X-Request-ID": text])["X-Request-ID"])
            await until { server.handler.records.map(\.identifier.description) == [identifier] }
            if isEchoed {
                #expect(identifier == text)
            } else {
                #expect(identifier.wholeMatch(of: /[0-9a-f]{16}/) != nil)
            }
        }
    }

    @Test func `a request with two identifiers gets a new one`() async throws {
        try await ScriptedServer.run(["/a": .text("a")]) { server in
            let client = try await server.client()
            var fields: HeaderFields = ["X-Request-ID": "one"]
            fields.append("two", for: "X-Request-ID")
            let first = try await client.response(to: "/a", fields)
            let second = try await client.response(to: "/a")
            #expect(!["one", "two"].contains(first["X-Request-ID"]))
            #expect(first["X-Request-ID"] != second["X-Request-ID"])
        }
    }

    @Test func `a handler cannot split a response`() async throws {
        let script = ScriptedHandler.Script.ready { _ in
            .text(200, "a", fields: ["X-Forged": "a\r\nSet-Cookie: b=c", "X-Name\r\nX-More": "a", "X-Good": "good"])
        }
        try await ScriptedServer.run(["/a": script]) { server in
            let response = try await server.client().response(to: "/a")
            #expect(response["Set-Cookie"] == nil && response["X-Forged"] == nil && response["X-More"] == nil)
            #expect(response["X-Good"] == "good")
        }
    }
}

extension ConnectionActor {
    /// The nice value of its thread.
    fileprivate var niceValue: CInt { ThisProcess.niceValue() }
}
