// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
public import FoundationEssentials
import Glibc
public import Tintype
import TintypeCluster
import TintypeHTTP
import TintypeImgproxy

/// The images of a server, for programs that have an HTTP server of their own.
///
/// ```swift
/// let service = try await ImageService(ImageServer.Configuration())
/// let answer = await service.response(to: "/unsafe/w:400/plain/https://example.org/a.jpg", headers: [:])
/// ```
public final class ImageService: Sendable {
    /// The answer to a request.
    public struct Response: Sendable {
        /// The status code.
        public let status: Int
        /// The header fields, except for the fields of a connection, such as `Date`.
        public let headers: HeaderFields
        /// The content, also for HEAD, in which case the server must not send it.
        public let body: Data
    }

    /// The settings.
    public let configuration: ImageServer.Configuration
    /// The loader of the images.
    public let loader: LoaderActor
    let handler: ImageHandler
    private let accessLog: AccessLog?
    private let watermark: Image?
    private let sources: SourceFetchers
    private let cluster: Cluster?

    /// Creates a service; ``ImageServer`` creates one of its own.
    ///
    /// ```swift
    /// let service = try await ImageService(ImageServer.Configuration())
    /// ```
    ///
    /// - Throws: ``SettingError`` if the configuration is invalid.
    public init(_ configuration: ImageServer.Configuration) async throws {
        try configuration.check()
        var loading = configuration.loader
        // Still images need only the first frame, so the pixels of the others do not count.
        if configuration.images.maximumFrames == 1 { loading.limits.maximumAnimationPixels = .max }
        try Self.checkFolder(of: loading.disk)
        try Self.checkAuthorities(of: loading.downloads.tls)
        let uploads = configuration.showsPage == true ? UploadStore() : nil
        let allowed = try Self.allowedSources(configuration)
        loading.checkRedirect = { try allowed.check($0) }
        loading.hooks.modifyRequest = { request, _ in
            guard let trace = ImageHandler.trace else { return request }
            var request = request
            var generator = SystemRandomNumberGenerator()
            request.headers.set(trace.child(using: &generator).traceparent, for: "traceparent")
            return request
        }
        let log = configuration.logFormat.map { AccessLog($0, to: STDERR_FILENO) }
        let level = configuration.logLevel
        let cluster = configuration.cluster.map { settings in
            var settings = settings
            settings.report = Self.logging("Redis", settings.report, level, log)
            return Cluster(settings)
        }
        if let cluster {
            loading.tiers.append(cluster.tier)
            loading.fetcherWrapper = { cluster.fetcher(over: $0) }
        }
        if var coldTier = configuration.coldTier {
            coldTier.report = Self.logging("The bucket", coldTier.report, level, log)
            loading.tiers.append(ColdTier(coldTier))
        }
        let loader = LoaderActor(configuration: loading)
        cluster?.join(with: loader)
        let watermark = try await Self.image(configuration.images.watermark, "watermark", loader)
        // Load the fallback image now, so that a mistake shows at the start.
        _ = try await Self.image(configuration.images.fallback, "fallback image", loader)
        let sources = try SourceFetchers(
            configuration.sources,
            allowed: allowed,
            uploads: uploads,
            downloads: loader.downloads
        )
        self.cluster = cluster
        self.configuration = configuration
        self.loader = loader
        self.accessLog = log
        self.watermark = watermark
        self.sources = sources
        let handler = ImageHandler(
            configuration: configuration,
            loader: loader,
            cluster: cluster,
            planner: try Self.planner(configuration, configuration.addresses, sources, watermark),
            purges: PurgeList(file: loading.disk?.directory.appending(path: "purges")),
            uploads: uploads,
            metrics: ServerMetrics(version: ImageServer.version),
            log: log
        )
        // Do this before the first request, which must not find entries that were purged while this server was away.
        await cluster?.followPurges { [purges = handler.purges, routes = handler.routes] news in
            // A server that starts again reads the purges of the cluster in addition to its file.
            try? purges.purge(news.compactMap { line in PurgeList.Moment(line.identifier).map { (line.text, $0) } })
            routes.removeAll()
        }
        self.handler = handler
    }

    /// Checks a configuration as a service would.
    ///
    /// The check covers presets and folders, and loads the watermark and the fallback image. It does not open the disk
    /// cache.
    ///
    /// ```swift
    /// try await ImageService.check(configuration)
    /// ```
    ///
    /// - Throws: ``SettingError`` for the first mistake.
    public static func check(_ configuration: ImageServer.Configuration) async throws {
        var configuration = configuration
        configuration.loader.disk = nil
        configuration.cluster = nil
        configuration.logFormat = nil
        try await ImageService(configuration).shutdown()
    }

    /// Writes a line about an event of the program to the log of the service, if it has one.
    ///
    /// ```swift
    /// service.log(.info, "The keys were read again.")
    /// ```
    public func log(_ level: ImageServer.LogLevel, _ message: String) {
        guard let log = self.accessLog, level.isLogged(at: self.configuration.logLevel) else { return }
        log.log(level, message)
        log.flush()
    }

    /// Returns the answer to a request.
    ///
    /// ```swift
    /// let answer = await service.response(to: target, headers: ["Accept": "image/webp"])
    /// ```
    ///
    /// - Parameters:
    ///   - target: The path and the query of the request, as they were received.
    ///   - method: The method; GET by default.
    ///   - headers: The header fields.
    ///   - body: The body of a POST, such as a purge.
    /// - Returns: The answer, which may be a refusal.
    public func response(
        to target: String,
        method: String = "GET",
        headers: HeaderFields,
        body: Data = Data()
    ) async -> Response {
        var text = "\(method) \(target) HTTP/1.1\r\n"
        if headers["Host"] == nil { text += "Host: localhost\r\n" }
        for field in headers where !FieldText.isAboutConnection(field.name) {
            text += "\(field.name): \(field.value)\r\n"
        }
        var parser = RequestHeadParser()
        let bytes = Array((text + "\r\n").utf8)
        switch bytes.withUnsafeBytes({ parser.parse($0) }) {
        case .head(let head, let count) where count == bytes.count:
            let request = ServerRequest(head: head, body: body, client: ClientAddress(bytes: []))
            // Do not check `Host`: the program that received the request can do that.
            if let answer = self.handler.readyAnswer(underAnyHost: request) { return Response(answer) }
            return Response(await self.handler.answer(to: request))
        case .refused(let refusal): return Response(self.handler.refusal(refusal.status, refusal.message))
        default: return Response(self.handler.refusal(400, "The request is malformed."))
        }
    }

    /// Replaces the rules for URLs, such as keys and presets.
    ///
    /// Requests under way keep the old ones.
    ///
    /// ```swift
    /// try service.reload(configuration.addresses)
    /// ```
    ///
    /// - Throws: ``SettingError`` if a rule is invalid; the old rules stay in force.
    public func reload(_ addresses: ImageServer.Configuration.Addresses) throws(SettingError) {
        self.handler.setPlanner(try Self.planner(self.configuration, addresses, self.sources, self.watermark))
    }

    /// Ends the loads under way, and closes the caches.
    ///
    /// ```swift
    /// await service.shutdown()
    /// ```
    public func shutdown() async {
        await self.loader.shutdown()
        await self.cluster?.shutdown()
        await self.accessLog?.finish(within: .seconds(1))
    }

    private typealias StoreReport = @Sendable (Cluster.Configuration.Event) -> Void

    /// Returns a function that reports the events of a store, and writes them to the log.
    private static func logging(
        _ store: String,
        _ report: @escaping StoreReport,
        _ level: ImageServer.LogLevel,
        _ log: AccessLog?
    ) -> StoreReport {
        { event in
            report(event)
            let (importance, message): (ImageServer.LogLevel, String) =
                switch event {
                case .circuitOpened(let reason):
                    (.error, "\(store) fails, so this server continues without it, and tries it again: \(reason)")
                case .circuitClosed: (.info, "\(store) works again.")
                case .unsuitableSetting(let advice): (.warning, advice)
                }
            if importance.isLogged(at: level) { log?.log(importance, message) }
        }
    }

    private static func planner(
        _ configuration: ImageServer.Configuration,
        _ addresses: ImageServer.Configuration.Addresses,
        _ sources: SourceFetchers,
        _ watermark: Image?
    ) throws(SettingError) -> RoutePlanner {
        let settings = try configuration.addressSettings(addresses)
        let parser: AddressParser
        do {
            parser = try AddressParser(settings)
        } catch {
            throw SettingError(error.message)
        }
        return RoutePlanner(
            parser: parser,
            sources: sources,
            images: configuration.images,
            limits: configuration.loader.limits,
            watermark: watermark
        )
    }

    private static func allowedSources(
        _ configuration: ImageServer.Configuration
    ) throws(SettingError) -> AllowedSources {
        guard !configuration.sources.allowed.isEmpty else { return .all }
        do {
            return try AllowedSources(patterns: configuration.sources.allowed)
        } catch {
            throw SettingError(error.message)
        }
    }

    /// Creates the folder of the disk cache.
    ///
    /// Without the folder the server would work, but it would make every image anew after each start.
    private static func checkFolder(of disk: DiskCache.Configuration?) throws(SettingError) {
        guard let path = disk?.directory.path(percentEncoded: false) else { return }
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            let code = ((error as? CocoaError)?.underlying as? POSIXError)?.code.rawValue
            let reason = code.map { $0 == EEXIST ? "it is not a folder" : String(cString: strerror($0)) }
            throw SettingError(
                "The cache folder \(path) cannot be made: \(reason ?? "\(error)"). Name another one with cache-dir."
            )
        }
        guard access(path, W_OK | X_OK) == 0 else {
            let reason = String(cString: strerror(errno))
            throw SettingError(
                "The cache folder \(path) cannot be written: \(reason). Name another one with cache-dir."
            )
        }
    }

    /// Checks the file of certificates, without which every download over HTTPS would fail.
    private static func checkAuthorities(of policy: TLSPolicy) throws(SettingError) {
        guard case .file(let path) = policy.authorities else { return }
        guard access(path, R_OK) == 0 else {
            let reason = String(cString: strerror(errno))
            throw SettingError("The file \(path) of authorities cannot be read: \(reason).")
        }
        let store = X509_STORE_new()
        defer { X509_STORE_free(store) }
        let isLoaded = X509_STORE_load_locations(store, path, nil) == 1
        // OpenSSL would report the error for the next connection of this thread.
        ERR_clear_error()
        guard isLoaded else {
            throw SettingError("The file \(path) of authorities has no certificate in PEM text, or a damaged one.")
        }
    }

    /// Loads an image that the configuration names, which may be a file or in an internal network.
    private static func image(_ url: URL?, _ name: String, _ loader: LoaderActor) async throws -> Image? {
        guard let url else { return nil }
        do {
            var request = ImageRequest(url: url)
            request.transport.networkPolicy = .unrestricted
            return try await loader.image(for: request)
        } catch {
            throw SettingError("The \(name) \(url.absoluteString) cannot be loaded: \(error)")
        }
    }
}

extension ImageService.Response {
    fileprivate init(_ answer: ServerAnswer) {
        self.status = answer.status
        self.headers = answer.head.fields.headerFields
        self.body = answer.body.bytes
    }
}

extension ImageServer.Configuration {
    /// Returns the settings of the address parser for these rules.
    ///
    /// - Throws: ``SettingError``.
    func addressSettings(_ addresses: Addresses) throws(SettingError) -> AddressSettings {
        var settings = AddressSettings()
        settings.pathPrefix = addresses.pathPrefix
        settings.baseURL = addresses.baseURL
        settings.base64IncludesFileName = addresses.base64IncludesFilename
        settings.argumentSeparator = addresses.argumentsSeparator
        settings.objectVersionSeparator = addresses.queryMarker
        settings.presets = addresses.presets
        settings.acceptsOnlyPresets = addresses.usesOnlyPresets
        settings.allowedOptions = addresses.allowedOptions ?? []
        settings.allowsSecurityOptions = addresses.allowsSecurityOptions
        settings.trustedSignatures = addresses.trustedSignatures.sorted()
        if self.sources.localRoot != nil { settings.schemes.insert(.local) }
        if self.sources.s3 != nil { settings.schemes.insert(.s3) }
        if self.showsPage == true { settings.schemes.insert(.upload) }
        settings.defaults.limits.frameCount = self.images.maximumFrames
        settings.defaults.limits.resultSide = self.images.maximumResultSide
        do {
            settings.replacements = addresses.replacements.map {
                SourceReplacement($0.pattern, with: $0.replacement)
            }
            if !addresses.keys.isEmpty {
                let keys = addresses.keys.map { SignatureKeys(key: $0.key, salt: $0.salt) }
                settings.signer = try URLSigner(keys: keys, size: addresses.signatureSize)
            }
            return settings
        } catch {
            throw SettingError(error.message)
        }
    }
}
