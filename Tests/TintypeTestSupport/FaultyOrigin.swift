public import FoundationEssentials

/// A small HTTP server that does what nginx never does: it cuts bodies short, lies, stalls, resets.
///
/// ```swift
/// let origin = try FaultyOrigin(["/short": .lying(declaredLength: 100, body: [1, 2, 3])])
/// let url = origin.url("/short")
/// ```
///
/// It counts requests, connections and clients that left, and lets tests wait for them. It has a blocking thread
/// for each connection, and ends with ``stop()`` or when the object goes away. Unscripted paths are 404.
public final class FaultyOrigin: Sendable {
    private let server: FaultyServer
    /// The address that it listens on.
    public let address: String

    /// Starts the origin on a free port of an address of this machine.
    ///
    /// - Parameters:
    ///   - responses: What it does, by path; queries are not looked at.
    ///   - address: The address, one of 127.0.0.0/8.
    ///   - usesTLS: Whether it speaks HTTPS; ``authorityPath`` vouches for it.
    ///   - speaksHTTP2: Whether it agrees on HTTP/2 over TLS. Each connection gets once what the path `*` has,
    ///     which is the target in the client's preface; frames are read in ``FaultyResponse/Step/awaitStreams(_:)`` only.
    ///   - acceptsConnections: If false, it listens but never accepts, as an overloaded host does.
    /// - Throws: An error when no port can be opened.
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

    /// The port it listens on.
    public var port: Int { self.server.port }

    /// The URL of a path, which starts with a slash.
    public func url(_ path: String) -> URL {
        let text = "\(self.server.authority == nil ? "http" : "https")://\(self.address):\(self.port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("\(text) is no URL") }
        return url
    }

    /// The file with the certificate of the authority that vouches for it, if it speaks TLS.
    public var authorityPath: String? { self.server.authority?.authorityPath }

    /// The bytes that it has sent in all with ``FaultyResponse/Step/flood(_:)``.
    public var floodedBytes: Int { self.server.record.floodedBytes }

    /// Sets or replaces what a path does from the next request on.
    public func script(_ path: String, _ response: FaultyResponse) {
        self.server.record.script(path, response)
    }

    /// Sets what the next requests for a path get, one each; those after them get what the path always gets.
    public func script(_ path: String, sequence: [FaultyResponse]) {
        self.server.record.script(path, sequence: sequence)
    }

    /// The heads of all requests for a path, in order, as they were received.
    public func requestHeads(for path: String) -> [String] {
        self.server.record.heads(for: path)
    }

    /// The paths of all requests, in the order in which they came.
    public var requestedPaths: [String] { self.server.record.paths }

    /// The number of requests for a path.
    public func requestCount(for path: String) -> Int {
        self.server.record.counts(for: path).requests
    }

    /// The number of connections over which a path was asked for.
    public func connectionCount(for path: String) -> Int {
        self.server.record.counts(for: path).connections
    }

    /// The number of clients that have closed a connection whose last request was for this path.
    public func disconnectCount(from path: String) -> Int {
        self.server.record.counts(for: path).disconnects
    }

    /// The number of connections that have been accepted in all.
    public var connectionCount: Int { self.server.record.connections }

    /// Returns once a path has been asked for `count` times in all.
    public func waitForRequests(_ count: Int = 1, for path: String) async {
        await self.server.record.wait { $0.counts[path, default: .init()].requests >= count }
    }

    /// Returns once `count` clients in all have closed a connection whose last request was for this path.
    public func waitForDisconnect(_ count: Int = 1, from path: String) async {
        await self.server.record.wait { $0.counts[path, default: .init()].disconnects >= count }
    }

    /// Closes every connection and ends every thread; a second call does nothing.
    public func stop() {
        self.server.stop()
    }
}
