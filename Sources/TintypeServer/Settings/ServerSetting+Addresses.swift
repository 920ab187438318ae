// SPDX-License-Identifier: Apache-2.0

extension ServerSetting {
    /// The settings of URLs and their signatures.
    static let ofAddresses: [ServerSetting] = [
        ServerSetting(
            "key",
            .list("HEX"),
            "a key that signs URLs, in hexadecimal digits; each key needs a salt, and further ones allow a change of "
                + "keys; other users see options, so prefer the file or the environment",
            foreign: ["IMGPROXY_KEY"]
        ) { $0.keys = $1 },
        ServerSetting(
            "salt",
            .list("HEX"),
            "the salt of the key at the same position",
            foreign: ["IMGPROXY_SALT"]
        ) { $0.salts = $1 },
        ServerSetting(
            "signature-size",
            .number(1...32),
            "the bytes of a signature; default 32",
            foreign: ["IMGPROXY_SIGNATURE_SIZE"]
        ) { $0.configuration.addresses.signatureSize = $1 },
        ServerSetting(
            "trusted-signatures",
            .list("TEXTS"),
            "signatures that are accepted for every URL",
            foreign: ["IMGPROXY_TRUSTED_SIGNATURES"]
        ) { $0.configuration.addresses.trustedSignatures = Set($1) },
        ServerSetting(
            "path-prefix",
            .text("PATH"),
            "the path in front of all URLs; default none",
            foreign: ["IMGPROXY_PATH_PREFIX"]
        ) { $0.configuration.addresses.pathPrefix = $1 },
        ServerSetting(
            "base-url",
            .text("TEXT"),
            "the text in front of source URLs that do not begin with it; default none",
            foreign: ["IMGPROXY_BASE_URL"]
        ) { $0.configuration.addresses.baseURL = $1 },
        ServerSetting(
            "replace",
            .texts("PATTERN=TEXT"),
            "changes of source URLs, with ; between them; a * matches everything except a slash, and ${1} stands for "
                + "the first match",
            foreign: ["IMGPROXY_URL_REPLACEMENTS"]
        ) { $0.replacements = $1 },
        ServerSetting(
            "base64-filename",
            .flag,
            "the last part of a Base64 source is a file name that does not count",
            foreign: ["IMGPROXY_BASE64_URL_INCLUDES_FILENAME"]
        ) { $0.configuration.addresses.base64IncludesFilename = $1 },
        ServerSetting(
            "arguments-separator",
            .text("TEXT"),
            "the text between the arguments of an option in a URL; default :",
            foreign: ["IMGPROXY_ARGUMENTS_SEPARATOR"]
        ) { $0.configuration.addresses.argumentsSeparator = $1 },
        ServerSetting(
            "query-separator",
            .text("TEXT"),
            "the text between the key of an object and its version, for sources that are not HTTP; default ?",
            foreign: ["IMGPROXY_SOURCE_URL_QUERY_SEPARATOR"]
        ) { $0.configuration.addresses.queryMarker = $1 },
        ServerSetting(
            "preset",
            .texts("NAME=OPTIONS"),
            "options by name, such as thumbnail=rs:fill:200:200/q:75; the preset default applies to every URL",
            foreign: ["IMGPROXY_PRESETS"]
        ) { $0.presets = $1 },
        ServerSetting(
            "presets-separator",
            .text("TEXT"),
            "the text between the presets of one value; default a comma",
            foreign: ["IMGPROXY_PRESETS_SEPARATOR"]
        ) { $0.presetsSeparator = $1 },
        ServerSetting(
            "presets-file",
            .text("FILE"),
            "a file of presets, one a line; lines that begin with # are comments",
            foreign: ["IMGPROXY_PRESETS_PATH"]
        ) { $0.presetsFile = $1 },
        ServerSetting(
            "only-presets",
            .flag,
            "URLs name presets instead of options",
            foreign: ["IMGPROXY_ONLY_PRESETS"]
        ) { $0.configuration.addresses.usesOnlyPresets = $1 },
        ServerSetting(
            "allow-options",
            .list("NAMES"),
            "the options that URLs may have, as they spell them; default all",
            foreign: ["IMGPROXY_ALLOWED_PROCESSING_OPTIONS"]
        ) { $0.configuration.addresses.allowedOptions = Set($1) },
        ServerSetting(
            "security-options",
            .flag,
            "URLs may change the limits of images",
            foreign: ["IMGPROXY_ALLOW_SECURITY_OPTIONS"]
        ) { $0.configuration.addresses.allowsSecurityOptions = $1 },
    ]
}
