// SPDX-License-Identifier: Apache-2.0

import Tintype

extension ServerSetting {
    /// The settings of sources, and of the way to them.
    static let ofSources: [ServerSetting] = [
        ServerSetting(
            "allow",
            .list("PATTERN"),
            "the beginning of source URLs that are allowed, such as https://*.example.org/ for all hosts below the "
                + "domain; elsewhere a * matches a part of a label or of a path segment; default all",
            foreign: ["IMGPROXY_ALLOWED_SOURCES"]
        ) { $0.configuration.sources.allowed = $1 },
        ServerSetting(
            "local-root",
            .folder,
            "the folder of local:/// sources; default none",
            foreign: ["IMGPROXY_LOCAL_FILESYSTEM_ROOT"]
        ) { $0.configuration.sources.localRoot = $1 },
        ServerSetting("s3", .flag, "permits s3:// sources", foreign: ["IMGPROXY_USE_S3"]) { $0.usesS3 = $1 },
        ServerSetting(
            "s3-endpoint",
            .server,
            "the URL of the object store; default Amazon's",
            foreign: ["IMGPROXY_S3_ENDPOINT"]
        ) { $0.s3.endpoint = $1 },
        ServerSetting(
            "s3-region",
            .text("NAME"),
            "the region of the object store; default us-east-1",
            foreign: ["IMGPROXY_S3_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"]
        ) { $0.s3.region = $1 },
        ServerSetting(
            "s3-access-key",
            .secret("TEXT"),
            "the access key of the object store; default none, for requests without a signature",
            foreign: ["AWS_ACCESS_KEY_ID"]
        ) { $0.s3.accessKey = $1 },
        ServerSetting(
            "s3-secret-key",
            .secret("TEXT"),
            "the secret of the access key; other users see options, so prefer the file or the environment",
            foreign: ["AWS_SECRET_ACCESS_KEY"]
        ) { $0.s3.secretKey = $1 },
        ServerSetting(
            "s3-session-token",
            .secret("TEXT"),
            "the token of a temporary access key",
            foreign: ["AWS_SESSION_TOKEN"]
        ) { $0.s3.sessionToken = $1 },
        ServerSetting(
            "allow-network",
            .networks,
            "a network beside the public internet that sources may be in: loopback, link-local, private "
                + "(10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16), or addresses such as fd00::/8; sources may then have "
                + "any port, also in the public internet, unless allow-port names some",
            foreign: [
                ForeignVariable("IMGPROXY_ALLOW_LOOPBACK_SOURCE_ADDRESSES", ifTrue: "loopback"),
                ForeignVariable("IMGPROXY_ALLOW_LINK_LOCAL_SOURCE_ADDRESSES", ifTrue: "link-local"),
                ForeignVariable("IMGPROXY_ALLOW_PRIVATE_SOURCE_ADDRESSES", ifTrue: "private"),
            ]
        ) { $1.open(in: &$0.configuration.loader.downloads.networkPolicy) },
        // After allow-network, which opens all ports.
        ServerSetting(
            "allow-port",
            .ports,
            "the ports of sources, or any; default 80 and 443"
        ) { $0.configuration.loader.downloads.networkPolicy.allowedPorts = $1 },
        ServerSetting(
            "max-redirects",
            .number(0...100),
            "the most redirects of a source; default 5",
            foreign: ["IMGPROXY_MAX_REDIRECTS"]
        ) { $0.configuration.loader.downloads.maximumRedirects = $1 },
        ServerSetting(
            "origin-connections",
            .number(1...1_000),
            "the most connections to one origin at once; default 32"
        ) { $0.configuration.loader.downloads.maximumConnectionsPerHost = $1 },
        ServerSetting(
            "user-agent",
            .text("TEXT"),
            "the value of User-Agent in requests to sources; default tintype",
            foreign: ["IMGPROXY_USER_AGENT"]
        ) { $0.configuration.loader.downloads.userAgent = $1 },
        ServerSetting(
            "authorities",
            .text("FILE"),
            "a file of PEM certificates, the only authorities that may certify sources; default the authorities of the system"
        ) { $0.configuration.loader.downloads.tls.authorities = .file(path: $1) },
        ServerSetting(
            "download-time",
            .time,
            "the longest time to download a source, and half of that without a byte; default 10s",
            foreign: ["IMGPROXY_DOWNLOAD_TIMEOUT"]
        ) {
            $0.configuration.loader.downloads.totalTimeout = $1
            $0.configuration.loader.downloads.firstByteTimeout = $1 / 2
            $0.configuration.loader.downloads.timeout = $1 / 2
        },
        ServerSetting(
            "max-source-size",
            .bytes,
            "the most bytes of a source, or 0 for no limit; default 32MiB",
            foreign: ["IMGPROXY_MAX_SRC_FILE_SIZE"]
        ) {
            let limit = $1 == 0 ? SettingValue.maximumByteCount : $1
            $0.configuration.loader.downloads.maximumBodySize = limit
            $0.configuration.loader.limits.maximumEncodedBytes = limit
        },
        ServerSetting(
            "max-source-resolution",
            .megapixels,
            "the most megapixels of a source, or of all its frames together if max-frames is over 1; default 50",
            foreign: ["IMGPROXY_MAX_SRC_RESOLUTION"]
        ) {
            $0.configuration.loader.limits.maximumPixels = $1
            $0.configuration.loader.limits.maximumAnimationPixels = $1
        },
        ServerSetting(
            "max-source-side",
            .number(1...65_535),
            "the longest side of a source in pixels; default 16384"
        ) { $0.configuration.loader.limits.maximumSide = $1 },
    ]
}
