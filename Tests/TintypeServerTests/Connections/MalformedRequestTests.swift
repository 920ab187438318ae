// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// Malformed requests over real sockets, to the server and to nginx.
@Suite(.waiting, .timeLimit(.minutes(5))) struct MalformedRequestTests {
    /// A second request, which must not be answered behind a refused one.
    private static let next = Array("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)

    /// The server of all cases, and nginx with a file at the same path.
    private static let servers = Task { () -> (server: ImageServer, nginx: NginxOrigin?) in
        var configuration = ImageServer.Configuration()
        configuration.listenAddress = "127.0.0.1:0"
        configuration.showsPage = false
        configuration.logFormat = nil
        configuration.loader.disk = nil
        // On a busy machine, a head that comes byte by byte takes seconds.
        configuration.load.headTime = .seconds(60)
        // nginx 1.22 takes the sizes of its defaults; only its wait for a body must not hold up the test.
        let nginx = try? NginxOrigin(files: ["health": Data("healthy".utf8)], directives: "lingering_close off;")
        return (try await ImageServer.start(configuration), nginx)
    }

    /// The statuses of all responses in received bytes; 200 for a response of HTTP/0.9.
    private static func statuses(_ bytes: [UInt8]) -> [Int] {
        let text = String(decoding: bytes, as: UTF8.self)
        let found = text.matches(of: /HTTP\/1\.[01] ([1-5]\d\d)/).compactMap { Int($0.1) }
        return found.isEmpty && !bytes.isEmpty ? [200] : found
    }

    @Test(arguments: MalformedRequest.refused)
    func `a malformed request is refused as by nginx or more strictly`(of request: MalformedRequest) async throws {
        let (server, nginx) = try await Self.servers.value
        let client = try await ServerClient(to: server.address)
        await client.send(request.bytes + Self.next)
        let received = try await client.receiveToEnd()
        let statuses = Self.statuses(received)
        #expect(statuses.first == request.status)
        // The second request ends the connection, so it must be missing if the first one has to.
        #expect(statuses.count == (request.closes ? 1 : 2))
        #expect(!String(decoding: received, as: UTF8.self).contains("healthy"))
        if request.closes, let head = ClientResponseHead(received) { #expect(head.fields["Connection"] == "close") }

        guard let nginx else { return }
        let other = try await ServerClient(to: "127.0.0.1:\(nginx.port)", patience: 2)
        await other.send(request.bytes + Self.next)
        let (bytes, _) = await other.receiveWhatComes()
        let theirs = Self.statuses(bytes).first { $0 != 100 }
        // Their refusal means ours, and their acceptance means nothing.
        if let theirs, theirs >= 400 { #expect(request.status >= 400, "nginx answers \(theirs)") }
        if let theirs, theirs >= 400, Self.statuses(bytes).count == 1 {
            #expect(request.closes || theirs == 405 || theirs == 400, "nginx closes the connection after \(theirs)")
        }
    }

    @Test(arguments: MalformedRequest.accepted)
    func `an unusual request is answered`(of request: MalformedRequest) async throws {
        let (server, _) = try await Self.servers.value
        let client = try await ServerClient(to: server.address)
        await client.send(request.bytes + Self.next)
        let statuses = Self.statuses(try await client.receiveToEnd())
        #expect(statuses == [Int](repeating: 200, count: request.closes ? 1 : 2))
    }

    @Test(arguments: MalformedRequest.refused)
    func `a malformed request is refused alike in any split`(of request: MalformedRequest) async throws {
        guard request.bytes.count < 400 else { return }
        let (server, _) = try await Self.servers.value
        let client = try await ServerClient(to: server.address)
        for byte in request.bytes { await client.send([byte]) }
        await client.send(Self.next)
        #expect(Self.statuses(try await client.receiveToEnd()).first == request.status)
    }

    @Test func `the answer to a malformed request names the fault, and does not echo the request`() async throws {
        let (server, _) = try await Self.servers.value
        let client = try await ServerClient(to: server.address)
        await client.send("GET /<script> HTTP/1.1\r\nHost: a\r\nX-<script>: b\r\n\r\n")
        let response = try await client.receive()
        #expect(response.status == 400)
        #expect(!response.text.contains("script") && response.text.hasSuffix("\n"))
        #expect(response["Content-Type"] == "text/plain; charset=utf-8")
        #expect(response["X-Content-Type-Options"] == "nosniff")
        #expect(response["Cache-Control"] == "no-store")
        #expect(response["X-Request-ID"] != nil)
    }
}
