// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport

@testable import TintypeServer

/// The settings of the server: their ways, their order, their mistakes.
@Suite struct ServerSettingsTests {
    /// Returns the message of the error that `body` throws, or an empty text.
    private func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return ""
        } catch {
            return "\(error)"
        }
    }

    // MARK: - Each setting

    @Test(arguments: SettingCase.all)
    func `a setting has its effect as an option, a variable and a line of a file`(_ setting: SettingCase) throws {
        let others = setting.companionOptions
        // Some companions are a mistake without the setting.
        let without = try? ServerSettings(options: others)
        #expect(without.map { !setting.isApplied($0.configuration) } ?? true)
        let option = try ServerSettings(options: others + [setting.option])
        #expect(setting.isApplied(option.configuration))
        let variable = "TINTYPE_" + setting.name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
        let own = try ServerSettings(options: others, environment: [variable: setting.text])
        #expect(setting.isApplied(own.configuration))
        #expect(own.warnings.isEmpty)
        let file = try ServerSettings(options: others, file: "\(setting.name) = \(setting.text)\n")
        #expect(setting.isApplied(file.configuration))
        for (variable, text) in setting.foreign {
            let foreign = try ServerSettings(options: others, environment: [variable: text])
            #expect(setting.isApplied(foreign.configuration), "\(variable)")
        }
    }

    @Test func `the cases name every setting and every variable`() {
        // A file of presets has a test of its own.
        let names = Set(SettingCase.all.map { $0.name } + ["presets-file"])
        #expect(names == Set(ServerSetting.all.map { $0.name }))
        #expect(names.count == ServerSetting.all.count)
        let variables = Set(SettingCase.all.flatMap { $0.foreign.keys } + ["IMGPROXY_PRESETS_PATH"])
        let known = ServerSetting.all.flatMap { $0.foreignVariables.map { $0.name } }
        #expect(variables == Set(known))
        #expect(variables.count == known.count)
    }

    @Test func `without settings the configuration is the default`() throws {
        let settings = try ServerSettings()
        #expect(settings.warnings.isEmpty)
        #expect(settings.configuration.listenAddress == "127.0.0.1:8080")
        #expect(settings.configuration.loader.downloads.networkPolicy == .publicInternet)
        #expect(settings.configuration.addresses.keys.isEmpty)
        #expect(settings.configuration.sources.s3 == nil)
    }

    // MARK: - Precedence

    @Test func `options come before our variables, these before imgproxy's, and these before the file`() throws {
        func quality(options: [String] = [], _ environment: [String: String], file: String? = nil) throws -> Int {
            let options = options.map { (name: "--quality", value: Optional($0)) }
            let settings = try ServerSettings(options: options, environment: environment, file: file)
            return settings.configuration.images.quality
        }
        let both = ["TINTYPE_QUALITY": "20", "IMGPROXY_QUALITY": "30"]
        #expect(try quality(options: ["10"], both, file: "quality = 40") == 10)
        #expect(try quality(both, file: "quality = 40") == 20)
        #expect(try quality(["IMGPROXY_QUALITY": "30"], file: "quality = 40") == 30)
        #expect(try quality([:], file: "quality = 40") == 40)
        // The last one of several counts, and an empty one does not.
        #expect(try quality(options: ["10", "11"], both) == 11)
        #expect(try quality(["TINTYPE_QUALITY": "", "IMGPROXY_QUALITY": "30"]) == 30)
        #expect(try quality([:], file: "quality =\nquality = 40\nquality =\n") == 40)
    }

    @Test func `repeated options make one list, which replaces lists with less precedence`() throws {
        let environment = ["IMGPROXY_ALLOWED_SOURCES": "https://c.x/"]
        let one = [(name: "--allow", value: Optional("https://a.x/")), (name: "--allow", value: Optional("local://"))]
        let settings = try ServerSettings(options: one, environment: environment)
        #expect(settings.configuration.sources.allowed == ["https://a.x/", "local://"])
        let file = try ServerSettings(file: "allow = https://a.x/, https://b.x/\nallow=local://\n")
        #expect(file.configuration.sources.allowed == ["https://a.x/", "https://b.x/", "local://"])
    }

    @Test func `keys and salts are pairs by position`() throws {
        let options = [("--key", "0a"), ("--salt", "01"), ("--key", "0b"), ("--salt", "02")]
        let settings = try ServerSettings(options: options.map { (name: $0, value: Optional($1)) })
        let keys = settings.configuration.addresses.keys
        #expect(keys.map { $0.key } == [[10], [11]])
        #expect(keys.map { $0.salt } == [[1], [2]])
        // The layers may share the work.
        let mixed = try ServerSettings(
            options: [(name: "--key", value: "0a")],
            environment: ["IMGPROXY_SALT": "ff"],
            file: "key = 0c"
        )
        #expect(mixed.configuration.addresses.keys == [try SignatureKey(key: "0a", salt: "ff")])
    }

    @Test func `the most important variable of imgproxy counts`() throws {
        let environment = [
            "IMGPROXY_BIND": "127.0.0.1:1", "PORT": "2", "IMGPROXY_WATERMARK_URL": "http://e.x/",
            "IMGPROXY_WATERMARK_PATH": "/m.png",
        ]
        let configuration = try ServerSettings(environment: environment).configuration
        #expect(configuration.listenAddress == "127.0.0.1:1")
        #expect(configuration.images.watermark?.path == "/m.png")
        let networks = [
            "IMGPROXY_ALLOW_PRIVATE_SOURCE_ADDRESSES": "true", "IMGPROXY_ALLOW_LOOPBACK_SOURCE_ADDRESSES": "true",
            "IMGPROXY_ALLOW_LINK_LOCAL_SOURCE_ADDRESSES": "false",
        ]
        let denied = try ServerSettings(environment: networks).configuration.loader.downloads.networkPolicy
            .deniedAddresses
        #expect(!denied.contains(.privateUse) && !denied.contains(.loopback) && denied.contains(.linkLocal))
    }

    @Test func `ports that are named apply to networks that are opened`() throws {
        let settings = try ServerSettings(file: "allow-port = 9000\nallow-network = private")
        #expect(settings.configuration.loader.downloads.networkPolicy.allowedPorts == [9_000])
    }

    // MARK: - Values

    @Test(arguments: [
        ("10", 10_000), ("1.5", 1_500), ("500ms", 500), ("2s", 2_000), ("5 m", 300_000), ("1H", 3_600_000),
        ("7d", 604_800_000),
    ])
    func `times have units`(_ text: String, _ milliseconds: Int) throws {
        let settings = try ServerSettings(environment: ["TINTYPE_ANSWER_TIME": text])
        #expect(settings.configuration.load.answerTime == .milliseconds(milliseconds))
    }

    @Test(arguments: [
        ("1", 1), ("512b", 512), ("10k", 10_000), ("10kB", 10_000), ("3MB", 3_000_000), ("1.5 MiB", 1_572_864),
        ("2g", 2_000_000_000), ("1GiB", 1 << 30),
    ])
    func `sizes have units`(_ text: String, _ byteCount: Int) throws {
        let settings = try ServerSettings(environment: ["TINTYPE_MAX_SOURCE_SIZE": text])
        #expect(settings.configuration.loader.downloads.maximumBodySize == byteCount)
    }

    @Test(arguments: ["1", "t", "T", "true", "True", "TRUE", "yes", "on"])
    func `truth has several spellings`(_ text: String) throws {
        #expect(try ServerSettings(environment: ["IMGPROXY_AUTO_WEBP": text]).configuration.images.prefersWebP)
    }

    @Test(arguments: ["0", "f", "F", "false", "False", "FALSE", "no", "off"])
    func `falsehood has several spellings`(_ text: String) throws {
        #expect(try !ServerSettings(environment: ["IMGPROXY_AUTO_WEBP": text]).configuration.images.prefersWebP)
    }

    // MARK: - Mistakes

    private static let wrongValues: [(String, String, String)] = [
        ("quality", "0", "--quality takes a whole number from 1 to 100, and not 0."),
        ("quality", "good", "1 to 100"), ("quality", "99999999999999999999", "1 to 100"),
        ("signature-size", "33", "1 to 32"), ("png-level", "10", "0 to 9"), ("webp-effort", "7", "0 to 6"),
        ("max-frames", "0", "1 to 10000"),
        ("max-result-side", "65501", "0 to 65500"), ("max-source-side", "0", "1 to 65535"),
        ("watermark-opacity", "1.1", "from 0 to 1"), ("watermark-opacity", "nan", "from 0 to 1"),
        ("answer-time", "0", "a time over zero"), ("answer-time", "-1", "500ms"), ("answer-time", "soon", "500ms"),
        ("answer-time", "inf", "500ms"), ("answer-time", "1w", "500ms"), ("answer-time", "4000d", "500ms"),
        ("lifetime", "-1s", "a time in seconds"), ("cache-size", "big", "500MB"), ("cache-size", "-1", "500MB"),
        ("cache-size", "9999999GiB", "500MB"),
        (
            "cache-size", "100",
            "--cache-size takes at least 1MiB, such as 500MB or 2GiB, or 0 for no disk cache, and not"
        ),
        ("cache-size", "1048575", "at least 1MiB"), ("memory-size", "64", "at least 1MiB"),
        ("max-source-resolution", "0", "megapixels"),
        ("max-source-resolution", "1e9", "megapixels"), ("log-format", "xml", "one of text, json, none"),
        ("log-level", "loud", "one of info, warning, error"), ("format-quality", "webp", "such as webp=79"),
        ("format-quality", "webp=101", "from 1 to 100"), ("format-quality", "bitmap=5", "jpeg, png, webp, gif"),
        ("preferred-formats", "jpg,tga2", "formats such as"), ("preferred-formats", "avif", "at least one of"),
        ("s3-endpoint", "objects", "a URL such as"), ("s3-endpoint", "ftp://e.x", "a URL such as"),
        ("allow-network", "office", "loopback, link-local, private"), ("allow-network", "10.0.0.1/8", "10.0.0.0/8"),
        ("allow-port", "0", "1 to 65535"), ("allow-port", "http", "or any"), ("user-agent", "a\u{1}b", "one line"),
        ("secret", "a\u{1}b", "--secret takes text on one line"), ("replace", "abc", "pattern=text"),
        ("replace", "=abc", "pattern=text"), ("fallback-status", "100", "200 to 599"),
        ("fallback-status", "600", "0 to 599"), ("health-path", "up", "a slash and a name"),
        ("health-path", "/", "a slash and a name"),
        ("allow", "images.example.org", "not the beginning of a source URL"), ("allow", "gs://bucket/", "http, https"),
        ("allow", "https://a@b/", "not the beginning"), ("allow", "https://a b/", "not the beginning"),
        ("allow", "https://a\\b/", "not the beginning"), ("arguments-separator", "/", "without a slash"),
        ("preset", "small", "name=options"), ("preset", "=w:5", "needs a name"), ("preset", "a/b=w:5", "needs a name"),
        ("preset", "a=w:5/pr:b", "names the preset b"), ("preset", "a=blur", "has blur among its options"),
        ("presets-file", "/does/not/exist", "/does/not/exist cannot be read"),
        ("listen", "8080", "has no port"), ("listen", "::1:8080", "in brackets"),
        ("listen", "here:80", "an IP address"),
        ("listen", "127.0.0.1:65536", "The port of 127.0.0.1:65536 is over 65535"),
        ("listen", "[::1]:99999", "over 65535"),
        ("listen", "127.0.0.1:", "has no port"), ("listen", "127.0.0.1:+80", "has no port"),
        ("metrics-listen", "127.0.0.1:99999", "over 65535"), ("listen", "/run/tintype.sock", "has no port"),
        ("metrics-listen", "127.0.0.1", "metrics-listen is wrong"),
        ("metrics-listen", "127.0.0.1:8080", "another address than listen"),
        ("key", "0a", "The number of keys (--key: 1) is not the number of salts (--salt: 0)"),
        ("salt", "0a", "(--key: 0) is not the number of salts (--salt: 1)"),
        ("allow-origin", "foo bar", "must be * or one origin"), ("allow-origin", "example.org", "one origin"),
        ("allow-origin", "https://a.test/", "without a path"), ("allow-origin", "https://a.test,https://b.test", "one"),
        ("allow-origin", "https://a.test https://b.test", "one"), ("allow-origin", "://a.test", "one"),
        ("allow-origin", "https://", "one"),
        ("s3-access-key", "", "--s3-access-key needs a value"),
    ]

    @Test(arguments: Self.wrongValues)
    func `a wrong value is named with what is allowed`(_ name: String, _ text: String, _ words: String) {
        let message = self.message { _ = try ServerSettings(options: [(name: "--" + name, value: text)]) }
        #expect(message.contains(words), "\(message)")
        #expect(message.hasSuffix("."))
    }

    private static let wrongOptions: [([(String, String?)], String)] = [
        ([("--colour", nil)], "no option --colour"), ([("--ui", "yes")], "--ui takes no value"),
        ([("--quality", nil)], "--quality needs a value"), ([("--no-quality", "5")], "no option --no-quality"),
        ([("--only-presets", nil)], "needs a preset"),
        ([("--s3", nil), ("--s3-access-key", "A")], "belong together"),
        ([("--shared-time", "50ms")], "needs the setting shared"),
        ([("--key", "0"), ("--salt", "00")], "Key 1 of 1 cannot be used. The key is not hexadecimal"),
        ([("--key", "00,11"), ("--salt", "00,xy")], "Key 2 of 2 cannot be used. The salt is not hexadecimal"),
    ]

    @Test(arguments: Self.wrongOptions)
    func `wrong options are named`(_ options: [(String, String?)], _ words: String) {
        let message = self.message { _ = try ServerSettings(options: options.map { (name: $0, value: $1) }) }
        #expect(message.contains(words), "\(message)")
    }

    @Test func `a message names the variable`() {
        let own = self.message { _ = try ServerSettings(environment: ["TINTYPE_QUALITY": "x"]) }
        #expect(own == "TINTYPE_QUALITY takes a whole number from 1 to 100, and not x.")
        let foreign = self.message { _ = try ServerSettings(environment: ["IMGPROXY_TTL": "x"]) }
        #expect(foreign.hasPrefix("IMGPROXY_TTL takes a time in seconds"))
        let converted = self.message { _ = try ServerSettings(environment: ["IMGPROXY_LOG_LEVEL": "loud"]) }
        #expect(converted.hasPrefix("IMGPROXY_LOG_LEVEL takes one of"))
    }

    @Test func `messages and descriptions contain no secrets`() throws {
        let secret = "c0ffee"
        let message = self.message {
            _ = try ServerSettings(options: [(name: "--key", value: secret + "0"), (name: "--salt", value: "00")])
        }
        #expect(!message.isEmpty && !message.contains(secret))
        let key = try SignatureKey(key: secret, salt: "00")
        var configuration = ImageServer.Configuration()
        configuration.addresses.keys = [key]
        for text in ["\(key)", String(reflecting: key), "\(configuration.addresses)"] {
            #expect(!text.contains("192") && !text.contains(secret), "\(text)")
        }
    }

    @Test(arguments: [("943B421c", "52"), ("00", "ff")])
    func `keys are read in hexadecimal digits`(_ key: String, _ salt: String) throws {
        let value = try SignatureKey(key: key, salt: salt)
        #expect(value.key.count == key.count / 2 && value.salt.count == salt.count / 2)
    }

    @Test(arguments: [
        ("", "00"), ("0", "00"), ("0g", "00"), ("00", ""), ("00", " 0"), ("0x", "00"), ("\u{FF10}\u{FF10}", "00"),
    ])
    func `keys that are not hexadecimal are refused`(_ key: String, _ salt: String) {
        #expect(throws: SettingError.self) { try SignatureKey(key: key, salt: salt) }
    }

    // MARK: - Other machines

    @Test(arguments: [
        ":8080", "0.0.0.0:8080", "[::]:8080", "192.0.2.1:80", "[2001:db8::1]:80", "[::ffff:127.0.0.1]:80",
    ])
    func `an address that other machines reach needs keys or a permission`(_ address: String) throws {
        let options = [(name: "--listen", value: Optional(address))]
        let message = self.message { _ = try ServerSettings(options: options) }
        #expect(message.contains(address) && message.contains("--insecure"), "\(message)")
        #expect(try ServerSettings(options: options + [(name: "--insecure", value: nil)]).warnings.isEmpty)
        let keys = [(name: "--key", value: Optional("00")), (name: "--salt", value: Optional("00"))]
        #expect(try ServerSettings(options: options + keys).warnings.isEmpty)
        let ui = options + keys + [(name: "--ui", value: nil)]
        #expect(self.message { _ = try ServerSettings(options: ui) }.contains("--no-ui"))
        let page = try ServerSettings(options: ui + [(name: "--insecure", value: nil)])
        #expect(page.warnings == ["The page of --ui signs URLs for everyone who reaches \(address)."])
    }

    @Test(arguments: ["127.0.0.1:0", "127.9.9.9:80", "[::1]:8080", "localhost:8080"])
    func `an address of this machine needs no keys`(_ address: String) throws {
        let settings = try ServerSettings(options: [(name: "--listen", value: address)])
        #expect(settings.configuration.listenAddress == address)
    }

    @Test func `a configuration that a program makes is checked as well`() {
        let changes: [(@Sendable (inout ImageServer.Configuration) -> Void, String)] = [
            ({ $0.images.quality = 0 }, "quality"), ({ $0.images.qualities = [.webp: 200] }, "format-quality"),
            ({ $0.images.pngLevel = -1 }, "png-level"), ({ $0.images.webpEffort = 7 }, "webp-effort"),
            ({ $0.images.preferredFormats = [.avif] }, "preferred-formats"),
            ({ $0.images.maximumFrames = 0 }, "max-frames"), ({ $0.images.maximumResultSide = 0 }, "max-result-side"),
            ({ $0.images.watermarkOpacity = .nan }, "watermark-opacity"),
            ({ $0.images.fallbackLifetime = .seconds(-1) }, "fallback-lifetime"),
            ({ $0.addresses.signatureSize = 0 }, "signature-size"), ({ $0.load.answerTime = .zero }, "answer-time"),
            ({ $0.load.connectionCount = 0 }, "connections"), ({ $0.load.drainTime = .seconds(-1) }, "drain-time"),
            ({ $0.caching.lifetime = .seconds(-1) }, "lifetime"), ({ $0.allowedOrigin = "a\r\nb" }, "allow-origin"),
            ({ $0.secret = "" }, "secret"),
        ]
        for (change, name) in changes {
            var configuration = ImageServer.Configuration()
            change(&configuration)
            let checked = configuration
            #expect(self.message { try checked.check() }.hasPrefix("The setting \(name) "), "\(name)")
        }
        #expect(self.message { try ImageServer.Configuration().check() } == "")
    }

    // MARK: - Files

    @Test func `a file has comments, quotes and blanks`() throws {
        let file = """
            \u{FEFF}# A comment
            quality=70

              path-prefix  =  "/a b"\u{20}
            base-url = 'http://e.x/#'
              # Another comment
            secret = "a = 'b'"
            user-agent = it's me
            ui = off
            """
        for text in [file, file.split(separator: "\n").joined(separator: "\r\n")] {
            let configuration = try ServerSettings(file: text).configuration
            #expect(configuration.images.quality == 70)
            #expect(configuration.addresses.pathPrefix == "/a b")
            #expect(configuration.addresses.baseURL == "http://e.x/#")
            #expect(configuration.secret == "a = 'b'")
            #expect(configuration.loader.downloads.userAgent == "it's me")
            #expect(configuration.showsPage == false)
        }
        #expect(try ServerSettings(file: "").configuration.images.quality == 80)
    }

    @Test(arguments: [
        ("quality = 70\ncolour = red", "Line 2 of the file sets colour, which is not a setting"),
        ("quality", "Line 1 of the file is not a setting"), ("\n\n--quality = 5", "Line 3 of the file sets --quality"),
        ("TINTYPE_QUALITY = 5", "TINTYPE_QUALITY, which is not a setting"), ("config = a", "sets config"),
        ("\nsecret = \"abc", "Line 2 of the file has a quotation mark that is not closed"),
        ("secret = '", "a quotation mark"),
        ("# a\nquality = 101", "quality in line 2 of the file takes a whole number from 1 to 100, and not 101."),
        ("quality = 70\n\nquality = 70", "Line 3 of the file sets quality again"),
        ("ui = on\nui = off", "Line 2 of the file sets ui again"),
    ])
    func `a mistake in a file is named with its line`(_ file: String, _ words: String) {
        let message = self.message { _ = try ServerSettings(file: file) }
        #expect(message.contains(words), "\(message)")
        let named = self.message { _ = try ServerSettings(file: file, fileName: "a.conf") }
        #expect(named == message.replacing("the file", with: "a.conf"))
    }

    @Test func `presets come from a file, and from settings that replace them`() throws {
        let folder = try TemporaryDirectory(prefix: "tintype-settings")
        let path = try folder.write("# Sizes\na=w:5\n\n b = rs:fit:9:9/q:5 \r\nc=pr:a:b\n".utf8, to: "presets")
        for environment in [
            ["IMGPROXY_PRESETS_PATH": path, "IMGPROXY_PRESETS": "a=w:6"],
            ["TINTYPE_PRESETS_FILE": path, "TINTYPE_PRESET": "a=w:6"],
        ] {
            let presets = try ServerSettings(environment: environment).configuration.addresses.presets
            #expect(presets == ["a": "w:6", "b": "rs:fit:9:9/q:5", "c": "pr:a:b"])
        }
    }

    @Test func `a preset may have any separator of arguments`() throws {
        let settings = try ServerSettings(file: "arguments-separator = ,\npresets-separator = ;\npreset = a=rs,fit,5,5")
        #expect(settings.configuration.addresses.presets == ["a": "rs,fit,5,5"])
    }

    // MARK: - Warnings

    @Test(arguments: [
        ("IMGPROXY_AVIF_SPEED", "5", "Tintype does not write AVIF"), ("IMGPROXY_AUTO_JXL", "true", "does not write"),
        ("IMGPROXY_USE_GCS", "true", "HTTP, folders and S3"), ("IMGPROXY_GCS_KEY", "{}", "HTTP, folders and S3"),
        ("IMGPROXY_USE_ETAG", "false", "ETag"), ("IMGPROXY_NETWORK", "unix", "TCP"),
        ("IMGPROXY_AUTOQUALITY_METHOD", "dssim", "imgproxy Pro"), ("IMGPROXY_SENTRY_DSN", "x", "Prometheus"),
        ("IMGPROXY_KEEP_COPYRIGHT", "true", "no metadata"), ("IMGPROXY_IGNORE_SSL_VERIFICATION", "1", "authorities"),
        ("IMGPROXY_COLOUR", "red", "is not known"), ("TINTYPE_COLOUR", "red", "is not known"),
        ("IMGPROXY_COLOUR", "", "is not known"),
    ])
    func `a variable without an effect is reported by name`(_ name: String, _ value: String, _ words: String) throws {
        let warnings = try ServerSettings(environment: [name: value, "PATH": "/bin"]).warnings
        try #require(warnings.count == 1)
        #expect(warnings[0].hasPrefix(name + " ") && warnings[0].contains(words), "\(warnings[0])")
    }

    @Test(arguments: [
        ("IMGPROXY_USE_GCS", "false"), ("IMGPROXY_AUTO_AVIF", ""), ("IMGPROXY_USE_ETAG", "true"),
        ("IMGPROXY_NETWORK", "tcp"), ("IMGPROXY_STRIP_METADATA", "1"), ("TINTYPE_JPEG_SHORTCUTS", "0"),
        ("IMGPROXYX", "1"), ("HOME", "/root"),
    ])
    func `a variable that asks for nothing else is not reported`(_ name: String, _ value: String) throws {
        #expect(try ServerSettings(environment: [name: value]).warnings.isEmpty)
    }

    @Test(arguments: [
        ("https://img.", true), ("https://img", true), ("https://img*", true), ("http://10.0.", true),
        ("https://img.example.org.", true), ("HTTPS://img./a/", true), ("https://img.example.org", false),
        ("https://img.example.org/", false), ("http://minio/", false), ("http://minio:9000", false),
        ("https://", false), ("https://*", false), ("https://*.example.org", false), ("http://localhost", false),
        ("s3://bucket", false), ("local://", false), ("http://[::1]", false),
    ])
    func `a pattern that ends within a host causes a warning`(_ pattern: String, _ isReported: Bool) throws {
        let warnings = try ServerSettings(environment: ["IMGPROXY_ALLOWED_SOURCES": pattern]).warnings
        #expect(warnings.count == (isReported ? 1 : 0), "\(warnings)")
        #expect(warnings.allSatisfy { $0.contains("The pattern \(pattern) of allow ends within a host") })
    }

    @Test func `a preset that contains itself is reported`() throws {
        let settings = try ServerSettings(environment: ["IMGPROXY_PRESETS": "a=q:50/pr:b,b=pr:a,c=q:60"])
        #expect(settings.warnings.map { $0.prefix(13) } == ["The preset a ", "The preset b "])
    }

    @Test func `formats that are not written are left out with a warning`() throws {
        let settings = try ServerSettings(environment: ["IMGPROXY_FORMAT_QUALITY": "avif=63,jxl=77,webp=79"])
        #expect(settings.configuration.images.qualities == [.webp: 79])
        #expect(settings.warnings.count == 2)
        #expect(settings.warnings.allSatisfy { $0.hasPrefix("IMGPROXY_FORMAT_QUALITY names ") })
    }

    // MARK: - Help

    @Test func `the help names every option and fits a terminal`() {
        let lines = ServerSettings.optionsHelp.split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= 100 })
        for setting in ServerSetting.all {
            #expect(lines.contains { ($0 + " ").hasPrefix("  \(setting.option) ") }, "\(setting.name)")
        }
    }

    @Test func `the help about variables names all of them and fits a terminal`() {
        let help = ServerSettings.environmentHelp
        #expect(help.split(separator: "\n").allSatisfy { $0.count <= 100 })
        for setting in ServerSetting.all {
            for name in [setting.variable] + setting.foreignVariables.map({ $0.name }) { #expect(help.contains(name)) }
        }
        for group in IneffectiveVariables.all {
            for name in group.names { #expect(help.contains(name)) }
        }
    }

    @Test func `no option has two meanings`() {
        let own = ["--config", "--check", "--help-environment", "--help"]
        let options = ServerSetting.all.flatMap { [$0.option] + ($0.negativeOption.map { [$0] } ?? []) } + own
        #expect(Set(options).count == options.count)
        #expect(ServerSettings.switches.isDisjoint(with: ServerSettings.valueOptions))
        #expect(ServerSettings.switches.count + ServerSettings.valueOptions.count + own.count == options.count)
    }
}
