// SPDX-License-Identifier: Apache-2.0

/// A group of imgproxy's variables that have no effect for the same reason.
struct IneffectiveVariables: Sendable {
    /// The reason, as the end of a sentence.
    let reason: String
    /// The names; a name that ends in `*` stands for all names that begin with the rest.
    let names: [String]
    /// The values that ask for what the server does anyway, in lower case.
    private let harmlessValues: Set<String>

    /// Creates a group in which `harmless` needs no warning.
    private init(_ reason: String, harmless: Bool = false, _ names: [String]) {
        self.reason = reason
        self.names = names.map { Self.prefix + $0 }
        self.harmlessValues = harmless ? ["true", "t", "1"] : ["false", "f", "0", "tcp"]
    }

    /// Returns whether the variable belongs to the group.
    func contains(_ name: String) -> Bool {
        self.names.contains { $0.hasSuffix("*") ? name.hasPrefix($0.dropLast()) : $0 == name }
    }

    /// Returns whether a value asks for something that does not happen.
    func asksForMore(_ value: String) -> Bool {
        let value = value.trimmed.lowercased()
        return !value.isEmpty && !self.harmlessValues.contains(value)
    }

    /// The beginning of the names of imgproxy's variables.
    static let prefix = "IMGPROXY_"

    /// The groups of all variables without an effect.
    static let all: [IneffectiveVariables] = [
        IneffectiveVariables(
            "Tintype does not write AVIF, JPEG XL or HEIC",
            [
                "AUTO_AVIF", "ENFORCE_AVIF", "ENABLE_AVIF_DETECTION", "AVIF_SPEED", "AUTO_JXL", "ENFORCE_JXL",
                "JXL_EFFORT", "ENFORCE_THUMBNAIL", "PRESERVE_HDR",
            ]
        ),
        IneffectiveVariables(
            "Tintype does not read SVG",
            ["ALWAYS_RASTERIZE_SVG", "MAX_SVG_CHECK_BYTES", "SVG_*"]
        ),
        IneffectiveVariables(
            "Tintype does not read SVG",
            harmless: true,
            ["SANITIZE_SVG"]
        ),
        IneffectiveVariables(
            "results have no metadata, and their colours are sRGB",
            harmless: true,
            ["STRIP_METADATA", "STRIP_COLOR_PROFILE"]
        ),
        IneffectiveVariables(
            "images are always upright",
            harmless: true,
            ["AUTO_ROTATE"]
        ),
        IneffectiveVariables(
            "results have no metadata",
            ["KEEP_COPYRIGHT"]
        ),
        IneffectiveVariables(
            "Tintype chooses these options of PNG and WebP by itself",
            ["PNG_INTERLACED", "PNG_QUANTIZE", "PNG_QUANTIZATION_COLORS", "WEBP_PRESET"]
        ),
        IneffectiveVariables(
            "JPEGs are reduced while they are decoded only if that suffices",
            ["DISABLE_SHRINK_ON_LOAD"]
        ),
        IneffectiveVariables(
            "max-source-resolution also limits the pixels of each frame",
            ["MAX_ANIMATION_FRAME_RESOLUTION"]
        ),
        IneffectiveVariables(
            "each result has an ETag of its own and the Last-Modified of its source",
            harmless: true,
            ["USE_ETAG", "USE_LAST_MODIFIED"]
        ),
        IneffectiveVariables(
            "each result has an ETag of its own",
            ["ETAG_BUSTER", "LAST_MODIFIED_BUSTER"]
        ),
        IneffectiveVariables(
            "every answer names the size of its image",
            harmless: true,
            ["ENABLE_DEBUG_HEADERS"]
        ),
        IneffectiveVariables(
            "fields of requests for images are never passed to origins",
            ["COOKIE_PASSTHROUGH", "COOKIE_BASE_URL", "ENABLE_CLIENT_HINTS"]
        ),
        IneffectiveVariables(
            "URLs can ask for it with att:1",
            ["RETURN_ATTACHMENT"]
        ),
        IneffectiveVariables(
            "certificates are always checked; name your own authority with authorities",
            ["IGNORE_SSL_VERIFICATION"]
        ),
        IneffectiveVariables(
            "the server listens on TCP",
            ["NETWORK", "SO_REUSEPORT"]
        ),
        IneffectiveVariables(
            "the loader manages connections to origins",
            ["CLIENT_KEEP_ALIVE_TIMEOUT"]
        ),
        IneffectiveVariables(
            "one region is used",
            ["S3_MULTI_REGION", "S3_ASSUME_ROLE_*"]
        ),
        IneffectiveVariables(
            "buckets are limited with allow",
            ["S3_ALLOWED_BUCKETS", "S3_DENIED_BUCKETS"]
        ),
        IneffectiveVariables(
            "Tintype reads from HTTP, folders and S3",
            ["USE_GCS", "GCS_*", "USE_ABS", "ABS_*", "USE_SWIFT", "SWIFT_*"]
        ),
        IneffectiveVariables(
            "Tintype reports to Prometheus and to its log",
            [
                "PROMETHEUS_NAMESPACE", "NEW_RELIC_*", "DATADOG_*", "OPEN_TELEMETRY_*", "CLOUD_WATCH_*", "BUGSNAG_*",
                "HONEYBADGER_*", "SENTRY_*", "AIRBRAKE_*", "REPORT_DOWNLOADING_ERRORS", "SYSLOG_*",
            ]
        ),
        IneffectiveVariables(
            "Tintype manages its memory by itself",
            ["DOWNLOAD_BUFFER_SIZE", "FREE_MEMORY_INTERVAL", "BUFFER_POOL_*", "MALLOC"]
        ),
        IneffectiveVariables(
            "settings come from options, a file or variables",
            ["ENV_*"]
        ),
        IneffectiveVariables(
            "it belongs to imgproxy Pro",
            [
                "CUSTOM_REQUEST_HEADERS", "CUSTOM_RESPONSE_HEADERS", "CUSTOM_HEADERS_SEPARATOR",
                "REQUEST_HEADERS_PASSTHROUGH", "RESPONSE_HEADERS_PASSTHROUGH", "SERVER_NAME", "HEALTH_CHECK_MESSAGE",
                "SOURCE_URL_ENCRYPTION_KEY", "INFO_*", "CACHE_*", "AUTOQUALITY_*", "BEST_FORMAT_*", "JPEG_NO_SUBSAMPLE",
                "JPEG_TRELLIS_QUANT", "JPEG_OVERSHOOT_DERINGING", "JPEG_OPTIMIZE_SCANS", "JPEG_QUANT_TABLE",
                "WEBP_COMPRESSION", "STRIP_METADATA_DPI", "COLOR_PROFILES_DIR", "RESIZING_ALGORITHM",
                "UNSHARP_MASKING_*", "SMART_CROP_*", "OBJECT_DETECTION_*", "CLASSIFICATION_*",
                "ENABLE_VIDEO_THUMBNAILS", "VIDEO_*", "WATERMARKS_CACHE_SIZE", "WATERMARK_PREPROCESS_URL",
                "FALLBACK_IMAGES_CACHE_SIZE", "FALLBACK_IMAGE_PREPROCESS_URL", "PDF_*", "USE_ALPHA_*",
            ]
        ),
    ]
}
