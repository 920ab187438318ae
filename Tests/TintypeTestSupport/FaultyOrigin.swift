// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A small HTTP server with faults that nginx never has: it truncates bodies, lies, stalls and resets connections.
///
/// ```swift
/// let origin = try FaultyOrigin(["/short": .lying(declaredLength: 100, body: [1, 2, 3])])
/// let url = origin.url("/short")
/// ```
///
/// The origin counts requests, connections and clients that left, and tests can wait for them. It has a blocking thread
/// for each connection, and ends with ``stop()`` or when the object goes away. Paths without a script have status 404.
public final class FaultyOrigin: Sendable {
    private let server: FaultyServer
    /// The address that the origin listens on.
    public let address: String

    /// Starts the origin on a free port of an address of this machine.
    ///
    /// - Parameters:
    ///   - responses: The responses by path, without queries.
    ///   - address: The address, one of 127.0.0.0/8.
    ///   - usesTLS: Whether the origin speaks HTTPS, with a certificate that ``authorityPath`` vouches for.
    ///   - speaksHTTP2: Whether the origin speaks HTTP/2 over TLS. Each connection performs the script of the path `*`
    ///     once, because `*` is the target in the client's preface. The origin only reads frames in
    ///     ``FaultyResponse/Step/awaitStreams(_:)``.
    ///   - acceptsConnections: If `false`, the origin listens but never accepts, like an overloaded host.
    /// - Throws: An error if no port can be opened.
    public init(
        _ responses: [String: FaultyResponse] = [:],
        address: String = "127.0.0.1",
        usesTLS: Bool = false,
        speaksHTTP2: Bool = false,
        acceptsConnections: Bool = true
    ) throws {
        self.address = address
        self.server = try FaultyServer(
            responses,
            address: address,
            usesTLS: usesTLS,
            speaksHTTP2: speaksHTTP2,
            acceptsConnections: acceptsConnections
        )
    }

    deinit {
        self.server.stop()
    }

    /// The port that the origin listens on.
    public var port: Int { self.server.port }

    /// Returns the URL of a path, which starts with a slash.
    public func url(_ path: String) -> URL {
        let text = "\(self.server.authority == nil ? "http" : "https")://\(self.address):\(self.port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        return url
    }

    /// The file with the certificate of the authority that vouches for the origin, if it uses TLS.
    public var authorityPath: String? { self.server.authority?.authorityPath }

    /// The total number of bytes sent with ``FaultyResponse/Step/flood(_:)``.
    public var floodedBytes: Int { self.server.record.floodedBytes }

    /// Sets the response for a path from the next request on.
    public func script(_ path: String, _ response: FaultyResponse) {
        self.server.record.script(path, response)
    }

    /// Sets the responses for the next requests for a path, one each, before its usual response.
    public func script(_ path: String, sequence: [FaultyResponse]) {
        self.server.record.script(path, sequence: sequence)
    }

    /// Returns the heads of all requests for a path as they were received, in order.
    public func requestHeads(for path: String) -> [String] {
        self.server.record.heads(for: path)
    }

    /// The paths of all requests in the order of their arrival.
    public var requestedPaths: [String] { self.server.record.paths }

    /// Returns the number of requests for a path.
    public func requestCount(for path: String) -> Int {
        self.server.record.counts(for: path).requests
    }

    /// Returns the number of clients that closed a connection whose last request was for this path.
    public func disconnectCount(from path: String) -> Int {
        self.server.record.counts(for: path).disconnects
    }

    /// The total number of accepted connections.
    public var connectionCount: Int { self.server.record.connections }

    /// Returns when a path has been requested `count` times in all.
    public func waitForRequests(_ count: Int = 1, for path: String) async {
        await self.server.record.wait { $0.counts[path, default: .init()].requests >= count }
    }

    /// Returns when `count` clients in all have closed a connection whose last request was for this path.
    public func waitForDisconnect(_ count: Int = 1, from path: String) async {
        await self.server.record.wait { $0.counts[path, default: .init()].disconnects >= count }
    }

    /// Closes every connection and ends every thread, and does nothing at a second call.
    public func stop() {
        self.server.stop()
    }
}
