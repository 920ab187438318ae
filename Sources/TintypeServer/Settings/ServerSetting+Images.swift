// SPDX-License-Identifier: Apache-2.0

extension ServerSetting {
    /// The settings of results.
    static let ofImages: [ServerSetting] = [
        ServerSetting(
            "quality",
            .number(1...100),
            "the quality of lossy formats; default 80",
            foreign: ["IMGPROXY_QUALITY"]
        ) { $0.configuration.images.quality = $1 },
        ServerSetting(
            "format-quality",
            .formatQualities,
            "the quality of formats for which it differs; default webp=79",
            foreign: ["IMGPROXY_FORMAT_QUALITY"]
        ) { $0.configuration.images.qualities = $1 },
        ServerSetting(
            "progressive",
            .flag,
            "writes progressive JPEGs",
            foreign: ["IMGPROXY_JPEG_PROGRESSIVE"]
        ) { $0.configuration.images.isProgressive = $1 },
        ServerSetting(
            "png-level",
            .number(0...9),
            "the effort of PNG; default 6"
        ) { $0.configuration.images.pngLevel = $1 },
        ServerSetting(
            "webp-effort",
            .number(0...6),
            "the effort of WebP; 2 halves the time, and makes files 3 % larger; default 4",
            foreign: ["IMGPROXY_WEBP_EFFORT"]
        ) { $0.configuration.images.webpEffort = $1 },
        ServerSetting(
            "preferred-formats",
            .formats,
            "the formats for URLs that name none: the format of the source if it is among them, otherwise the first "
                + "one that can hold the image; default jpeg,png,gif",
            foreign: ["IMGPROXY_PREFERRED_FORMATS"]
        ) { $0.configuration.images.preferredFormats = $1 },
        ServerSetting(
            "auto-webp",
            .flag,
            "clients that accept WebP receive it unless the URL names a format",
            foreign: ["IMGPROXY_AUTO_WEBP", "IMGPROXY_ENABLE_WEBP_DETECTION"]
        ) { $0.configuration.images.prefersWebP = $1 },
        ServerSetting(
            "enforce-webp",
            .flag,
            "clients that accept WebP receive it whatever the URL says",
            foreign: ["IMGPROXY_ENFORCE_WEBP"]
        ) { $0.configuration.images.enforcesWebP = $1 },
        ServerSetting(
            "skip-formats",
            .formats,
            "the formats of sources that are answered as they are; default none",
            foreign: ["IMGPROXY_SKIP_PROCESSING_FORMATS"]
        ) { $0.configuration.images.skippedFormats = Set($1) },
        ServerSetting(
            "max-frames",
            .number(1...10_000),
            "the most frames of an animation; default 1, which makes still images",
            foreign: ["IMGPROXY_MAX_ANIMATION_FRAMES"]
        ) { $0.configuration.images.maximumFrames = $1 },
        ServerSetting(
            "max-result-side",
            .number(0...ImageServer.Configuration.Images.longestSide),
            "the longest side of a result in pixels, or 0 for the longest that the formats permit; default 8192",
            foreign: ["IMGPROXY_MAX_RESULT_DIMENSION"]
        ) {
            $0.configuration.images.maximumResultSide = $1 == 0 ? ImageServer.Configuration.Images.longestSide : $1
        },
        ServerSetting(
            "linear-light",
            .flag,
            "resizes in linear light, so that fine detail keeps its brightness; slower",
            foreign: ["IMGPROXY_USE_LINEAR_COLORSPACE"]
        ) { $0.configuration.images.usesLinearLight = $1 },
        ServerSetting(
            "watermark",
            .image,
            "the image of watermarks; default none",
            foreign: [.data("IMGPROXY_WATERMARK_DATA"), "IMGPROXY_WATERMARK_PATH", "IMGPROXY_WATERMARK_URL"]
        ) { $0.configuration.images.watermark = $1 },
        ServerSetting(
            "watermark-opacity",
            .fraction,
            "the opacity of watermarks; default 1",
            foreign: ["IMGPROXY_WATERMARK_OPACITY"]
        ) { $0.configuration.images.watermarkOpacity = $1 },
        ServerSetting(
            "fallback",
            .image,
            "the image to answer with if a source fails; default none",
            foreign: [
                .data("IMGPROXY_FALLBACK_IMAGE_DATA"), "IMGPROXY_FALLBACK_IMAGE_PATH", "IMGPROXY_FALLBACK_IMAGE_URL",
            ]
        ) { $0.configuration.images.fallback = $1 },
        ServerSetting(
            "fallback-status",
            .number(0...599),
            "the status of the fallback image, or 0 for the status of the error; default 200",
            foreign: ["IMGPROXY_FALLBACK_IMAGE_HTTP_CODE"]
        ) { $0.configuration.images.fallbackStatus = $1 == 0 ? nil : $1 },
        ServerSetting(
            "fallback-lifetime",
            .timeOrZero,
            "the lifetime of the fallback image in clients, or 0 for the lifetime of other images; default 60s",
            foreign: ["IMGPROXY_FALLBACK_IMAGE_TTL"]
        ) { $0.configuration.images.fallbackLifetime = $1 == .zero ? nil : $1 },
    ]
}

extension ForeignVariable {
    /// A variable with an image in Base64.
    fileprivate static func data(_ name: String) -> ForeignVariable {
        ForeignVariable(name) { text in
            let base64 = String(text.filter { !$0.isWhitespace })
            return base64.isEmpty ? nil : "data:application/octet-stream;base64," + base64
        }
    }
}
