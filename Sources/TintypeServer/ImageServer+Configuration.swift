// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import Tintype
public import TintypeCluster

extension ImageServer {
    /// The settings of a server.
    ///
    /// By default the server answers on this machine only, loads from the public internet, and stores images in memory
    /// and on disk.
    public struct Configuration: Sendable {
        /// The address to listen on; by default `127.0.0.1:8080`.
        ///
        /// Port 0 picks a free port.
        public var listenAddress = "127.0.0.1:8080"
        /// The address of a second listener, which answers only `/metrics` and `/health`.
        ///
        /// With `nil`, the default, the first listener answers `/metrics`.
        public var metricsAddress: String?
        /// The names, without ports, to which the server answers in addition to `localhost`, `127.0.0.0/8` and `[::1]`.
        ///
        /// The server refuses other values of `Host` with 421, except for `/health`, `/ready` and `/metrics`. If the
        /// list is empty, as by default, it does so only without keys on a loopback address. ``ImageService`` answers
        /// to every name.
        public var hosts: [String] = []
        /// Whether a server without keys may listen on addresses that other machines reach; default false.
        public var isInsecure = false
        /// Whether `/` shows a page to try the server.
        ///
        /// With `nil`, the default, ``ImageServer`` shows it on loopback addresses without keys, and ``ImageService``
        /// does not.
        public var showsPage: Bool?
        /// The rules for URLs.
        public var addresses = Addresses()
        /// The settings of images.
        public var images = Images()
        /// The origins of images.
        public var sources = Sources()
        /// The header fields for the caches of clients.
        public var caching = Caching()
        /// The limits of load.
        public var load = Load()
        /// The cluster that this server joins to share a cache with other servers; by default `nil`, for no cluster.
        public var cluster: Cluster.Configuration?
        /// The object store behind all other caches; by default `nil`, for no object store.
        public var coldTier: ColdTier.Configuration?
        /// The token that requests for images must have as `Authorization: Bearer`, or `nil` to require none.
        public var secret: String?
        /// The token that purges must have as `Authorization: Bearer`; `nil`, the default, allows no purges.
        public var purgeSecret: String?
        /// The value of `Access-Control-Allow-Origin`, or `nil` for none.
        public var allowedOrigin: String?
        /// A second path of `/health`, or `nil` for none.
        public var healthPath: String?
        /// Whether answers describe errors in detail; for development only.
        public var explainsErrors = false
        /// The form of log lines, or `nil` for no log.
        public var logFormat: LogFormat? = .text
        /// The least important log lines to write; default ``LogLevel/info``.
        public var logLevel: LogLevel = .info
        /// The settings of the loader: caches, downloads, limits of images.
        ///
        /// The defaults are stricter than in `LoaderActor.Configuration`, because clients choose the sources.
        public var loader = Self.loaderDefaults

        /// Creates a configuration with the defaults.
        ///
        /// ```swift
        /// var configuration = ImageServer.Configuration()
        /// configuration.listenAddress = "0.0.0.0:8080"
        /// configuration.addresses.keys = [try SignatureKey(key: "943b421c9eb07c83", salt: "520f986b998682f1")]
        /// let server = try await ImageServer.start(configuration)
        /// ```
        public init() {}

        /// The settings of a loader behind a server.
        public static var loaderDefaults: LoaderActor.Configuration {
            var loader = LoaderActor.Configuration()
            loader.cachePolicy = .honorFreshness
            loader.isSharedCache = true
            loader.freshnessBounds = FreshnessBounds(
                defaultLifetime: .seconds(86_400),
                heuristicLifetime: .seconds(86_400),
                staleWhileRevalidate: .seconds(60),
                staleIfError: .seconds(86_400)
            )
            loader.failureLifetimes = FailureLifetimes(
                missing: .seconds(60),
                undecodable: .seconds(300),
                unreachable: .seconds(10),
                originFailure: .seconds(5)
            )
            loader.limits.maximumPixels = 50_000_000
            loader.limits.maximumSide = 16_384
            loader.limits.maximumAnimationPixels = 50_000_000
            loader.downloads.maximumBodySize = 32 << 20
            // Often all sources have one origin, and slow transfers must not hold up the others.
            loader.downloads.maximumConnectionsPerHost = 32
            loader.downloads.maximumRedirects = 5
            loader.downloads.connectTimeout = .seconds(3)
            loader.downloads.firstByteTimeout = .seconds(5)
            loader.downloads.timeout = .seconds(5)
            loader.downloads.totalTimeout = .seconds(10)
            loader.downloads.minimumSpeed = DownloadActor.MinimumSpeed(bytesPerSecond: 1_000, period: .seconds(5))
            loader.downloads.networkPolicy = .publicInternet
            return loader
        }
    }

    /// The form of log lines.
    public enum LogFormat: String, Sendable, CaseIterable {
        /// One line of text for each request.
        case text
        /// One JSON object for each request.
        case json
    }

    /// The importance of log lines.
    public enum LogLevel: String, Sendable, CaseIterable {
        /// Each request, and the events of the server.
        case info
        /// Answers with a status of 4xx, settings of Redis that do not suit a cache, and dropped log lines.
        case warning
        /// Answers with a status of 5xx, and failures of the server itself.
        case error

        /// Creates the level of an answer with this status.
        init(status: Int) {
            self = status >= 500 ? .error : status >= 400 ? .warning : .info
        }

        /// Whether a log of `level` contains lines of this level.
        func isLogged(at level: LogLevel) -> Bool {
            self.weight >= level.weight
        }

        private var weight: Int {
            switch self {
            case .info: 0
            case .warning: 1
            case .error: 2
            }
        }
    }
}

extension ImageServer.Configuration {
    /// The rules for URLs; see imgproxy's documentation for their form.
    public struct Addresses: Sendable {
        /// The keys that sign URLs; without keys, every URL is accepted.
        ///
        /// With several keys, clients can change from one to the next.
        public var keys: [SignatureKey] = []
        /// The bytes of a signature, 1 to 32; default 32.
        public var signatureSize = 32
        /// The signatures that are accepted for every URL; by default none.
        public var trustedSignatures: Set<String> = []
        /// The path in front of all URLs; by default none.
        public var pathPrefix = ""
        /// The text in front of source URLs that do not begin with it; by default none.
        public var baseURL = ""
        /// Replacements for the beginnings of source URLs; in a pattern, `*` stands for any characters except slashes.
        public var replacements: [(pattern: String, replacement: String)] = []
        /// Whether the last part of a Base64 source is a file name, which is ignored; default false.
        public var base64IncludesFilename = false
        /// The text between the arguments of an option.
        public var argumentsSeparator = ":"
        /// The text between the key of an object and its version, for sources that are not HTTP.
        public var queryMarker = "?"
        /// The presets: options by name.
        ///
        /// The preset `default` applies to every URL.
        public var presets: [String: String] = [:]
        /// Whether URLs name presets only; default false.
        public var usesOnlyPresets = false
        /// The options that URLs may have; `nil`, the default, allows all.
        public var allowedOptions: Set<String>?
        /// Whether URLs may change the limits of images; default false.
        public var allowsSecurityOptions = false

        /// Creates the rules with their defaults.
        ///
        /// ```swift
        /// configuration.addresses.presets = ["thumbnail": "rs:fill:200:200/q:75"]
        /// configuration.addresses.usesOnlyPresets = true
        /// ```
        public init() {}
    }

    /// The settings of images.
    public struct Images: Sendable {
        /// The quality of lossy formats, 1 to 100; default 80.
        public var quality = 80
        /// The quality by format, if it differs; by default 79 for WebP.
        public var qualities: [ImageFormat: Int] = [.webp: 79]
        /// Whether JPEGs are progressive; default false.
        public var isProgressive = false
        /// The effort of PNG, 0 to 9; default 6.
        public var pngLevel = 6
        /// The effort of WebP, 0 to 6; default 4.
        ///
        /// 2 takes half the time of 4, and makes files about 3 percent larger.
        public var webpEffort = 4
        /// The formats for images without a format in the URL, in the order of preference.
        ///
        /// A result has the format of its source if the list contains it. Otherwise it has the first format that can
        /// represent the image.
        public var preferredFormats: [ImageFormat] = [.jpeg, .png, .gif]
        /// Whether clients that accept WebP receive it unless the URL names a format; default false.
        public var prefersWebP = false
        /// Whether clients that accept WebP receive it whatever the URL says; default false.
        public var enforcesWebP = false
        /// Whether answers depend on the `Accept` field of requests.
        var readsAccept: Bool { self.prefersWebP || self.enforcesWebP }
        /// The formats of sources that are sent unchanged unless the URL names another format; by default none.
        public var skippedFormats: Set<ImageFormat> = []
        /// The most frames of an animation; default 1, which makes still images.
        public var maximumFrames = 1
        /// The longest side of a result; default 8,192.
        public var maximumResultSide = 8_192
        /// Whether images are resized in linear light, so that fine detail keeps its brightness; default false.
        ///
        /// Linear light is slower.
        public var usesLinearLight = false
        /// The image of watermarks, or `nil` for none.
        public var watermark: URL?
        /// The opacity of watermarks, 0 to 1; default 1.
        public var watermarkOpacity = 1.0
        /// The image to serve if a source fails, or `nil` for the error.
        public var fallback: URL?
        /// The status of the fallback image; default 200.
        ///
        /// With `nil` it has the status of the error.
        public var fallbackStatus: Int? = 200
        /// The lifetime of the fallback image in clients; default 60 seconds, or `nil` for the lifetime of other
        /// images.
        public var fallbackLifetime: Duration? = .seconds(60)

        /// Creates the settings with their defaults.
        ///
        /// ```swift
        /// configuration.images.prefersWebP = true
        /// configuration.images.qualities[.webp] = 75
        /// ```
        public init() {}
    }

    /// The origins of images.
    public struct Sources: Sendable {
        /// The patterns of source URLs that are allowed, such as `https://*.example.org/`; empty allows all.
        ///
        /// A host `*.example.org` means all hosts below the domain. Elsewhere a `*` stands for a part of a label or of
        /// a path segment. The patterns apply to each redirect as well.
        public var allowed: [String] = []
        /// The folder of `local:///` sources, or `nil` for none.
        public var localRoot: URL?
        /// The object store of `s3://` sources, or `nil` for none.
        public var s3: S3?

        /// Creates the origins with their defaults: HTTP and HTTPS, from everywhere.
        ///
        /// ```swift
        /// configuration.sources.allowed = ["https://images.example.org/"]
        /// configuration.sources.localRoot = URL(filePath: "/srv/images")
        /// ```
        public init() {}

        /// An object store that speaks S3.
        public struct S3: Sendable {
            /// The URL of the store; `nil` for Amazon's.
            public var endpoint: URL?
            /// The region; default `us-east-1`.
            public var region = "us-east-1"
            /// The access key, or `nil` for requests without a signature.
            public var accessKey: String?
            /// The secret of the access key.
            public var secretKey: String?
            /// The token of temporary keys, or `nil`.
            public var sessionToken: String?

            /// Creates a store.
            ///
            /// ```swift
            /// var store = ImageServer.Configuration.Sources.S3()
            /// store.endpoint = URL(string: "https://objects.example.org")
            /// configuration.sources.s3 = store
            /// ```
            public init() {}
        }
    }

    /// The header fields for the caches of clients.
    public struct Caching: Sendable {
        /// The lifetime of images in clients; default one year.
        ///
        /// Zero means `no-cache`.
        public var lifetime: Duration = .seconds(31_536_000)
        /// Whether answers have the lifetime that the origin gives; default false.
        public var passesOriginLifetime = false
        /// The lifetime in clients of errors about missing or unreadable sources; default 60 seconds.
        public var errorLifetime: Duration = .seconds(60)
        /// Whether answers have `Link: <source>; rel="canonical"`; default false.
        public var setsCanonicalLink = false

        /// Creates the settings with their defaults.
        ///
        /// ```swift
        /// configuration.caching.lifetime = .seconds(86_400)
        /// ```
        public init() {}
    }

    /// The limits of load.
    public struct Load: Sendable {
        /// The longest time for an answer; default 15 seconds.
        public var answerTime: Duration = .seconds(15)
        /// The longest time that a request may wait for other requests to its origin; default 3 seconds.
        ///
        /// The server immediately refuses a request that would wait longer. All origins together have four times as
        /// many places, so a wait can be four times as long if few of the requests wait for slow origins.
        public var queueTime: Duration = .seconds(3)
        /// The most requests to one origin at once, at work or waiting; `nil`, the default, is 64 for each lane.
        ///
        /// All origins together have four times as many. ``queueTime`` permits fewer if images take long.
        public var queueCount: Int?
        /// The most connections; default 20,000.
        ///
        /// A further connection takes the place of the one that has been idle for longest, or waits if none is idle.
        public var connectionCount = 20_000
        /// The longest time without a request on a connection; default 60 seconds.
        public var idleTime: Duration = .seconds(60)
        /// The longest time for the head of a request; default 5 seconds.
        public var headTime: Duration = .seconds(5)
        /// The period in which a client must take 10 kB of its answer, or a sixth if that is more; default 10 seconds.
        public var writeTime: Duration = .seconds(10)
        /// The longest time that ``ImageServer/shutdown()`` waits for answers; default 20 seconds.
        public var drainTime: Duration = .seconds(20)

        /// Creates the limits with their defaults.
        ///
        /// ```swift
        /// configuration.load.answerTime = .seconds(5)
        /// ```
        public init() {}
    }
}
