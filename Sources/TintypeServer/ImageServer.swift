// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// An image server that understands imgproxy's URLs.
///
/// It makes each image once for all clients that request it, stores it in memory and on disk, and refuses requests that
/// it cannot answer in time. Put nginx or a balancer in front of it for TLS and HTTP/2.
///
/// ```swift
/// var configuration = ImageServer.Configuration()
/// configuration.sources.allowed = ["https://images.example.org/"]
/// let server = try await ImageServer.start(configuration)
/// print(server.address)  // 127.0.0.1:8080
/// ```
public final class ImageServer: Sendable {
    /// The address of the server with its port, such as `127.0.0.1:8080`.
    public let address: String
    /// The address that answers only `/metrics` and `/health`, if the configuration has one.
    public let metricsAddress: String?
    /// The service that answers the requests.
    public let service: ImageService
    static let version = "0.1.0"
    private let connections: ConnectionActor
    private let metricsConnections: ConnectionActor?

    private init(
        _ service: ImageService,
        _ connections: (server: ConnectionActor, address: String),
        _ metrics: (server: ConnectionActor, address: String)?
    ) {
        self.service = service
        self.address = connections.address
        self.connections = connections.server
        self.metricsAddress = metrics?.address
        self.metricsConnections = metrics?.server
    }

    /// Starts a server, which answers until ``shutdown()``.
    ///
    /// ```swift
    /// let server = try await ImageServer.start(ImageServer.Configuration())
    /// ```
    ///
    /// - Throws: ``SettingError`` if the configuration is invalid, ``ListenError`` if the server cannot listen.
    public static func start(_ configuration: Configuration) async throws -> ImageServer {
        var configuration = configuration
        // With keys behind a proxy on the same machine, the page would sign URLs for everyone.
        configuration.showsPage =
            configuration.showsPage ?? (configuration.listensOnLoopback && configuration.addresses.keys.isEmpty)
        let service = try await ImageService(configuration)
        var limits = ConnectionActor.Limits()
        limits.headTime = configuration.load.headTime
        limits.idleTime = configuration.load.idleTime
        limits.answerTime = configuration.load.answerTime
        limits.progressTime = configuration.load.writeTime
        limits.connectionCount = configuration.load.connectionCount
        var metrics: (server: ConnectionActor, address: String)?
        do {
            if let address = configuration.metricsAddress {
                let ofMetrics = ConnectionActor.Limits(connectionCount: limits.connectionCount)
                metrics = try await ConnectionActor.start(
                    at: address,
                    handler: service.handler.status,
                    limits: ofMetrics
                )
            }
            let connections = try await ConnectionActor.start(
                at: configuration.listenAddress,
                handler: service.handler,
                limits: limits
            )
            service.handler.status.connections.withLock { $0 = connections.server }
            return ImageServer(service, connections, metrics)
        } catch {
            await metrics?.server.shutdown(within: .zero)
            await service.shutdown()
            throw error
        }
    }

    /// Replaces the rules for URLs, such as keys and presets.
    ///
    /// Requests under way keep the old ones.
    ///
    /// ```swift
    /// configuration.addresses.keys.append(newKey)
    /// try server.reload(configuration.addresses)
    /// ```
    ///
    /// - Throws: ``SettingError`` if a rule is invalid; the old rules stay in force.
    public func reload(_ addresses: Configuration.Addresses) throws(SettingError) {
        try self.service.reload(addresses)
    }

    /// Writes a line about an event of the program to the server's log, if it has one.
    ///
    /// ```swift
    /// server.log(.info, "The keys were read again.")
    /// ```
    public func log(_ level: LogLevel, _ message: String) {
        self.service.log(level, message)
    }

    /// Stops accepting connections, finishes the requests that have begun, and closes the caches.
    ///
    /// ```swift
    /// await server.shutdown()
    /// ```
    public func shutdown() async {
        self.service.handler.status.beginEnding()
        await self.connections.shutdown(within: self.service.configuration.load.drainTime)
        await self.metricsConnections?.shutdown(within: .seconds(1))
        await self.service.shutdown()
        // Break the reference cycle: the connections own the handler.
        self.service.handler.status.connections.withLock { $0 = nil }
    }
}
