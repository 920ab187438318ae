// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeCluster

@testable import TintypeServer

/// A value of a setting with its effect on the configuration.
struct SettingCase: Sendable, CustomTestStringConvertible {
    let name: String
    /// The value in our spelling.
    let text: String
    /// The variables of other programs that mean the same, with their values.
    let foreign: [String: String]
    /// The options without which the setting has no effect.
    let companions: [String]
    /// Returns whether a configuration shows the effect.
    let isApplied: @Sendable (ImageServer.Configuration) -> Bool

    init(
        _ name: String,
        _ text: String,
        foreign: [String: String] = [:],
        with companions: [String] = [],
        isApplied: @escaping @Sendable (ImageServer.Configuration) -> Bool
    ) {
        self.name = name
        self.text = text
        self.foreign = foreign
        self.companions = companions
        self.isApplied = isApplied
    }

    var testDescription: String { "\(self.name) = \(self.text)" }

    /// The companions as options.
    var companionOptions: [(name: String, value: String?)] {
        self.companions.map { companion in
            let parts = companion.split(separator: " ", maxSplits: 1).map { String($0) }
            return (name: parts[0], value: parts.count > 1 ? parts[1] : nil)
        }
    }

    /// The setting as an option.
    var option: (name: String, value: String?) {
        let isSwitch = ServerSettings.switches.contains("--" + self.name)
        guard isSwitch else { return (name: "--" + self.name, value: self.text) }
        return (name: (self.text == "true" ? "--" : "--no-") + self.name, value: nil)
    }

    /// Every setting, in the order of the help.
    static let all = Self.ofServer + Self.ofAddresses + Self.ofImages + Self.ofSources + Self.ofCaching + Self.ofLoad

    private static let ofServer: [SettingCase] = [
        SettingCase("listen", "127.0.0.1:0", foreign: ["IMGPROXY_BIND": "127.0.0.1:0"]) {
            $0.listenAddress == "127.0.0.1:0"
        },
        SettingCase("listen", ":9000", foreign: ["PORT": "9000"], with: ["--insecure"]) { $0.listenAddress == ":9000" },
        SettingCase("metrics-listen", "[::1]:9100", foreign: ["IMGPROXY_PROMETHEUS_BIND": "[::1]:9100"]) {
            $0.metricsAddress == "[::1]:9100"
        },
        SettingCase("host", "a.test, [fd00::1]") { $0.hosts == ["a.test", "[fd00::1]"] },
        SettingCase("insecure", "true") { $0.isInsecure },
        SettingCase("ui", "true") { $0.showsPage == true },
        SettingCase("ui", "false") { $0.showsPage == false },
        SettingCase("secret", "abc", foreign: ["IMGPROXY_SECRET": "abc"]) { $0.secret == "abc" },
        SettingCase("purge-secret", "abc") { $0.purgeSecret == "abc" },
        SettingCase("allow-origin", "*", foreign: ["IMGPROXY_ALLOW_ORIGIN": "*"]) { $0.allowedOrigin == "*" },
        SettingCase("allow-origin", "https://www.e.x:8443") { $0.allowedOrigin == "https://www.e.x:8443" },
        SettingCase("health-path", "/up", foreign: ["IMGPROXY_HEALTH_CHECK_PATH": "/up"]) { $0.healthPath == "/up" },
        SettingCase("log-format", "json", foreign: ["IMGPROXY_LOG_FORMAT": "gcp"]) { $0.logFormat == .json },
        SettingCase("log-format", "none") { $0.logFormat == nil },
        SettingCase("log-level", "warning", foreign: ["IMGPROXY_LOG_LEVEL": "warn"]) { $0.logLevel == .warning },
        SettingCase("explain-errors", "true", foreign: ["IMGPROXY_DEVELOPMENT_ERRORS_MODE": "true"]) {
            $0.explainsErrors
        },
    ]

    private static let ofAddresses: [SettingCase] = [
        SettingCase("key", "0a,0B", foreign: ["IMGPROXY_KEY": "0a,0B"], with: ["--salt 01,02"]) {
            $0.addresses.keys.map { $0.key } == [[10], [11]]
        },
        SettingCase("salt", "01", foreign: ["IMGPROXY_SALT": "01"], with: ["--key 0a"]) {
            $0.addresses.keys.map { $0.salt } == [[1]]
        },
        SettingCase("signature-size", "8", foreign: ["IMGPROXY_SIGNATURE_SIZE": "8"]) {
            $0.addresses.signatureSize == 8
        },
        SettingCase("trusted-signatures", "a, b", foreign: ["IMGPROXY_TRUSTED_SIGNATURES": "a,b"]) {
            $0.addresses.trustedSignatures == ["a", "b"]
        },
        SettingCase("path-prefix", "/img", foreign: ["IMGPROXY_PATH_PREFIX": "/img"]) {
            $0.addresses.pathPrefix == "/img"
        },
        SettingCase("base-url", "http://e.x/", foreign: ["IMGPROXY_BASE_URL": "http://e.x/"]) {
            $0.addresses.baseURL == "http://e.x/"
        },
        SettingCase(
            "replace",
            "m://*/=s3://${1}/;n=o",
            foreign: ["IMGPROXY_URL_REPLACEMENTS": "m://*/=s3://${1}/;n=o"]
        ) { configuration in
            let pairs = configuration.addresses.replacements
            return pairs.map { $0.pattern } == ["m://*/", "n"] && pairs.map { $0.replacement } == ["s3://${1}/", "o"]
        },
        SettingCase("base64-filename", "true", foreign: ["IMGPROXY_BASE64_URL_INCLUDES_FILENAME": "t"]) {
            $0.addresses.base64IncludesFilename
        },
        SettingCase("arguments-separator", ",", foreign: ["IMGPROXY_ARGUMENTS_SEPARATOR": ","]) {
            $0.addresses.argumentsSeparator == ","
        },
        SettingCase("query-separator", "!", foreign: ["IMGPROXY_SOURCE_URL_QUERY_SEPARATOR": "!"]) {
            $0.addresses.queryMarker == "!"
        },
        SettingCase("preset", "a=q:50,b=w:9/pr:a", foreign: ["IMGPROXY_PRESETS": "a=q:50,b=w:9/pr:a"]) {
            $0.addresses.presets == ["a": "q:50", "b": "w:9/pr:a"]
        },
        SettingCase(
            "presets-separator",
            ";",
            foreign: ["IMGPROXY_PRESETS_SEPARATOR": ";"],
            with: ["--preset a=q:50;b=w:9"]
        ) { $0.addresses.presets == ["a": "q:50", "b": "w:9"] },
        SettingCase("only-presets", "true", foreign: ["IMGPROXY_ONLY_PRESETS": "1"], with: ["--preset a=q:5"]) {
            $0.addresses.usesOnlyPresets
        },
        SettingCase("allow-options", "w,h,pr", foreign: ["IMGPROXY_ALLOWED_PROCESSING_OPTIONS": "w,h,pr"]) {
            $0.addresses.allowedOptions == ["w", "h", "pr"]
        },
        SettingCase("security-options", "true", foreign: ["IMGPROXY_ALLOW_SECURITY_OPTIONS": "True"]) {
            $0.addresses.allowsSecurityOptions
        },
    ]

    private static let ofImages: [SettingCase] = [
        SettingCase("quality", "75", foreign: ["IMGPROXY_QUALITY": "75"]) { $0.images.quality == 75 },
        SettingCase(
            "format-quality",
            "jpg=70, webp=60",
            foreign: ["IMGPROXY_FORMAT_QUALITY": "jpeg=70,avif=40,webp=60"]
        ) { $0.images.qualities == [.jpeg: 70, .webp: 60] },
        SettingCase("progressive", "true", foreign: ["IMGPROXY_JPEG_PROGRESSIVE": "1"]) { $0.images.isProgressive },
        SettingCase("png-level", "9") { $0.images.pngLevel == 9 },
        SettingCase("webp-effort", "2", foreign: ["IMGPROXY_WEBP_EFFORT": "2"]) { $0.images.webpEffort == 2 },
        SettingCase("preferred-formats", "webp,png", foreign: ["IMGPROXY_PREFERRED_FORMATS": "webp,jxl,png"]) {
            $0.images.preferredFormats == [.webp, .png]
        },
        SettingCase(
            "auto-webp",
            "true",
            foreign: ["IMGPROXY_AUTO_WEBP": "1", "IMGPROXY_ENABLE_WEBP_DETECTION": "1"]
        ) { $0.images.prefersWebP },
        SettingCase("enforce-webp", "true", foreign: ["IMGPROXY_ENFORCE_WEBP": "1"]) { $0.images.enforcesWebP },
        SettingCase("skip-formats", "gif,jpg", foreign: ["IMGPROXY_SKIP_PROCESSING_FORMATS": "gif,svg,jpeg"]) {
            $0.images.skippedFormats == [.gif, .jpeg]
        },
        SettingCase("max-frames", "100", foreign: ["IMGPROXY_MAX_ANIMATION_FRAMES": "100"]) {
            $0.images.maximumFrames == 100
        },
        SettingCase("max-result-side", "4096", foreign: ["IMGPROXY_MAX_RESULT_DIMENSION": "4096"]) {
            $0.images.maximumResultSide == 4_096
        },
        SettingCase("max-result-side", "0", foreign: ["IMGPROXY_MAX_RESULT_DIMENSION": "0"]) {
            $0.images.maximumResultSide == 65_500
        },
        SettingCase("linear-light", "true", foreign: ["IMGPROXY_USE_LINEAR_COLORSPACE": "true"]) {
            $0.images.usesLinearLight
        },
        SettingCase("watermark", "/srv/mark.png", foreign: ["IMGPROXY_WATERMARK_PATH": "/srv/mark.png"]) {
            $0.images.watermark == URL(filePath: "/srv/mark.png")
        },
        SettingCase("watermark", "http://e.x/m.png", foreign: ["IMGPROXY_WATERMARK_URL": "http://e.x/m.png"]) {
            $0.images.watermark?.absoluteString == "http://e.x/m.png"
        },
        SettingCase(
            "watermark",
            "data:application/octet-stream;base64,AAEC",
            foreign: ["IMGPROXY_WATERMARK_DATA": "AA\nEC"]
        ) { $0.images.watermark?.absoluteString == "data:application/octet-stream;base64,AAEC" },
        SettingCase("watermark-opacity", "0.5", foreign: ["IMGPROXY_WATERMARK_OPACITY": "0.5"]) {
            $0.images.watermarkOpacity == 0.5
        },
        SettingCase("fallback", "/srv/f.png", foreign: ["IMGPROXY_FALLBACK_IMAGE_PATH": "/srv/f.png"]) {
            $0.images.fallback == URL(filePath: "/srv/f.png")
        },
        SettingCase("fallback", "https://e.x/f", foreign: ["IMGPROXY_FALLBACK_IMAGE_URL": "https://e.x/f"]) {
            $0.images.fallback?.absoluteString == "https://e.x/f"
        },
        SettingCase(
            "fallback",
            "data:application/octet-stream;base64,AAEC",
            foreign: ["IMGPROXY_FALLBACK_IMAGE_DATA": "AAEC"]
        ) { $0.images.fallback?.scheme == "data" },
        SettingCase("fallback-status", "404", foreign: ["IMGPROXY_FALLBACK_IMAGE_HTTP_CODE": "404"]) {
            $0.images.fallbackStatus == 404
        },
        SettingCase("fallback-status", "0", foreign: ["IMGPROXY_FALLBACK_IMAGE_HTTP_CODE": "0"]) {
            $0.images.fallbackStatus == nil
        },
        SettingCase("fallback-lifetime", "90", foreign: ["IMGPROXY_FALLBACK_IMAGE_TTL": "90"]) {
            $0.images.fallbackLifetime == .seconds(90)
        },
    ]

    private static let ofSources: [SettingCase] = [
        SettingCase(
            "allow",
            "https://*.e.x/,local://",
            foreign: ["IMGPROXY_ALLOWED_SOURCES": "https://*.e.x/,local://"]
        ) { $0.sources.allowed == ["https://*.e.x/", "local://"] },
        SettingCase("local-root", "/srv/images", foreign: ["IMGPROXY_LOCAL_FILESYSTEM_ROOT": "/srv/images"]) {
            $0.sources.localRoot?.path == "/srv/images"
        },
        SettingCase("s3", "true", foreign: ["IMGPROXY_USE_S3": "true"]) { $0.sources.s3 != nil },
        SettingCase(
            "s3-endpoint",
            "http://s3.e.x",
            foreign: ["IMGPROXY_S3_ENDPOINT": "http://s3.e.x"],
            with: ["--s3"]
        ) { $0.sources.s3?.endpoint?.absoluteString == "http://s3.e.x" },
        SettingCase(
            "s3-region",
            "eu-west-1",
            foreign: [
                "IMGPROXY_S3_REGION": "eu-west-1", "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1",
            ],
            with: ["--s3"]
        ) { $0.sources.s3?.region == "eu-west-1" },
        SettingCase("s3-access-key", "A", foreign: ["AWS_ACCESS_KEY_ID": "A"], with: ["--s3", "--s3-secret-key B"]) {
            $0.sources.s3?.accessKey == "A"
        },
        SettingCase(
            "s3-secret-key",
            "B",
            foreign: ["AWS_SECRET_ACCESS_KEY": "B"],
            with: ["--s3", "--s3-access-key A"]
        ) { $0.sources.s3?.secretKey == "B" },
        SettingCase("s3-session-token", "C", foreign: ["AWS_SESSION_TOKEN": "C"], with: ["--s3"]) {
            $0.sources.s3?.sessionToken == "C"
        },
        SettingCase(
            "allow-network",
            "loopback",
            foreign: ["IMGPROXY_ALLOW_LOOPBACK_SOURCE_ADDRESSES": "true"]
        ) { configuration in
            let policy = configuration.loader.downloads.networkPolicy
            return !policy.deniedAddresses.contains(.loopback) && policy.deniedAddresses.contains(.privateUse)
                && policy.allowedPorts == nil && policy.deniedHosts.isEmpty && policy.allowedAddresses.count == 1
        },
        SettingCase(
            "allow-network",
            "link-local",
            foreign: ["IMGPROXY_ALLOW_LINK_LOCAL_SOURCE_ADDRESSES": "true"]
        ) { configuration in
            let denied = configuration.loader.downloads.networkPolicy.deniedAddresses
            return !denied.contains(.linkLocal) && denied.contains(.cloudMetadata)
        },
        SettingCase(
            "allow-network",
            "private,fd00::/8"
        ) { configuration in
            let policy = configuration.loader.downloads.networkPolicy
            return !policy.deniedAddresses.contains(.privateUse)
                && policy.allowedAddresses == [AddressRange("fd00::/8")].compactMap { $0 }
        },
        SettingCase("allow-network", "private", foreign: ["IMGPROXY_ALLOW_PRIVATE_SOURCE_ADDRESSES": "1"]) {
            !$0.loader.downloads.networkPolicy.deniedAddresses.contains(.privateUse)
        },
        SettingCase("allow-port", "80,8080") { $0.loader.downloads.networkPolicy.allowedPorts == [80, 8_080] },
        SettingCase("allow-port", "any") { $0.loader.downloads.networkPolicy.allowedPorts == nil },
        SettingCase("origin-connections", "8") { $0.loader.downloads.maximumConnectionsPerHost == 8 },
        SettingCase("max-redirects", "0", foreign: ["IMGPROXY_MAX_REDIRECTS": "0"]) {
            $0.loader.downloads.maximumRedirects == 0
        },
        SettingCase("user-agent", "images/1", foreign: ["IMGPROXY_USER_AGENT": "images/1"]) {
            $0.loader.downloads.userAgent == "images/1"
        },
        SettingCase("authorities", "/srv/ca.pem") { $0.loader.downloads.tls.authorities == .file(path: "/srv/ca.pem") },
        SettingCase("download-time", "7s", foreign: ["IMGPROXY_DOWNLOAD_TIMEOUT": "7"]) {
            $0.loader.downloads.totalTimeout == .seconds(7)
                && $0.loader.downloads.firstByteTimeout == .seconds(3.5) && $0.loader.downloads.timeout == .seconds(3.5)
        },
        SettingCase("max-source-size", "1MB", foreign: ["IMGPROXY_MAX_SRC_FILE_SIZE": "1000000"]) {
            $0.loader.downloads.maximumBodySize == 1_000_000 && $0.loader.limits.maximumEncodedBytes == 1_000_000
        },
        SettingCase("max-source-size", "0", foreign: ["IMGPROXY_MAX_SRC_FILE_SIZE": "0"]) {
            $0.loader.downloads.maximumBodySize == 1 << 50
        },
        SettingCase("max-source-resolution", "16.8", foreign: ["IMGPROXY_MAX_SRC_RESOLUTION": "16.8"]) {
            $0.loader.limits.maximumPixels == 16_800_000 && $0.loader.limits.maximumAnimationPixels == 16_800_000
        },
        SettingCase("max-source-side", "9000") { $0.loader.limits.maximumSide == 9_000 },
    ]

    private static let ofCaching: [SettingCase] = [
        SettingCase("cache-dir", "/srv/cache") { $0.loader.disk?.directory.path == "/srv/cache" },
        SettingCase("cache-size", "2GiB") { $0.loader.disk?.sizeLimit == 2 << 30 },
        SettingCase("cache-size", "0") { $0.loader.disk == nil },
        SettingCase("shared", "redis+cluster://10.0.0.5,10.0.0.6") { $0.cluster != nil },
        SettingCase("shared-revision", "7", with: ["--shared redis://10.0.0.5"]) { $0.cluster?.revision == "7" },
        SettingCase("shared-time", "5s", with: ["--shared redis://10.0.0.5"]) {
            $0.cluster?.redis.commandTimeBudget == .seconds(5) && $0.cluster?.redis.connectTimeout == .seconds(5)
        },
        SettingCase("cold", "s3://cache/images?region=eu-central-1") {
            $0.coldTier?.bucket == "cache" && $0.coldTier?.prefix == "images"
        },
        SettingCase("memory-size", "0") {
            $0.loader.memory.costLimit == 0 && $0.loader.memory.encodedCostLimit == 0
        },
        SettingCase("memory-size", "100MB") {
            $0.loader.memory.costLimit == 50_000_000 && $0.loader.memory.encodedCostLimit == 50_000_000
        },
        SettingCase("source-lifetime", "1h") {
            $0.loader.freshnessBounds.defaultLifetime == .seconds(3_600)
                && $0.loader.freshnessBounds.heuristicLifetime == .seconds(3_600)
        },
        SettingCase("stale-while-revalidate", "5m") {
            $0.loader.freshnessBounds.staleWhileRevalidate == .seconds(300)
        },
        SettingCase("stale-if-error", "2h") { $0.loader.freshnessBounds.staleIfError == .seconds(7_200) },
        SettingCase("lifetime", "1d", foreign: ["IMGPROXY_TTL": "86400"]) { $0.caching.lifetime == .seconds(86_400) },
        SettingCase("origin-lifetime", "true", foreign: ["IMGPROXY_CACHE_CONTROL_PASSTHROUGH": "true"]) {
            $0.caching.passesOriginLifetime
        },
        SettingCase("error-lifetime", "0") { $0.caching.errorLifetime == .zero },
        SettingCase("canonical-link", "true", foreign: ["IMGPROXY_SET_CANONICAL_HEADER": "true"]) {
            $0.caching.setsCanonicalLink
        },
    ]

    private static let ofLoad: [SettingCase] = [
        SettingCase("answer-time", "30s", foreign: ["IMGPROXY_TIMEOUT": "30"]) { $0.load.answerTime == .seconds(30) },
        SettingCase("queue-time", "500ms") { $0.load.queueTime == .milliseconds(500) },
        SettingCase("queue-size", "10", foreign: ["IMGPROXY_REQUESTS_QUEUE_SIZE": "10"], with: ["--lanes 4"]) {
            $0.load.queueCount == 14
        },
        SettingCase("queue-size", "0", foreign: ["IMGPROXY_REQUESTS_QUEUE_SIZE": "0"]) {
            $0.load.queueCount.map { $0 > 1_000_000 } ?? false
        },
        SettingCase("lanes", "200", foreign: ["IMGPROXY_WORKERS": "200", "IMGPROXY_CONCURRENCY": "200"]) {
            $0.loader.laneCount == 200
        },
        SettingCase("connections", "100", foreign: ["IMGPROXY_MAX_CLIENTS": "100"]) { $0.load.connectionCount == 100 },
        SettingCase("connections", "0", foreign: ["IMGPROXY_MAX_CLIENTS": "0"]) {
            $0.load.connectionCount == 1_000_000
        },
        SettingCase("idle-time", "90", foreign: ["IMGPROXY_KEEP_ALIVE_TIMEOUT": "90"]) {
            $0.load.idleTime == .seconds(90)
        },
        SettingCase(
            "head-time",
            "7",
            foreign: ["IMGPROXY_READ_REQUEST_TIMEOUT": "7", "IMGPROXY_READ_TIMEOUT": "7"]
        ) { $0.load.headTime == .seconds(7) },
        SettingCase(
            "write-time",
            "7",
            foreign: ["IMGPROXY_WRITE_RESPONSE_TIMEOUT": "7", "IMGPROXY_WRITE_TIMEOUT": "7"]
        ) { $0.load.writeTime == .seconds(7) },
        SettingCase("drain-time", "5m", foreign: ["IMGPROXY_GRACEFUL_STOP_TIMEOUT": "300"]) {
            $0.load.drainTime == .seconds(300)
        },
    ]
}
