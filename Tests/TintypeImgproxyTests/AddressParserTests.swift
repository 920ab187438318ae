// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport

@testable import TintypeImgproxy

/// The grammar of URLs: segments, presets, and what clients and proxies make of them.
@Suite struct AddressParserTests {
    private static let base64 = "aHR0cDovL2ltYWdlcy5leGFtcGxlL2NhdC5qcGc"

    // MARK: Clients

    @Test(arguments: [
        ("/insecure/g:ce/rs:auto:0:0:0/\(base64)", ResizingType.auto, 0, 0, FormatName?.none),
        ("/insecure/blur:0.5/rot:90/g:ce/rs:auto:80:0:0/\(base64)", .auto, 80, 0, nil),
        ("//insecure/q:70/g:sm/rs:fill:64:0:0/\(base64)", .fill, 64, 0, nil),
        ("/insecure/g:ce/rs:auto:10:0:0/\(base64).webp", .auto, 10, 0, .webp),
        ("/_/resize:fill:100:50:True/format:webp/plain/http://images.example/cat.jpg", .fill, 100, 50, .webp),
    ])
    func `the URLs of clients are understood`(
        target: String,
        type: ResizingType,
        width: Int,
        height: Int,
        format: FormatName?
    ) throws {
        let address = try read(target)
        #expect(address.source == "http://images.example/cat.jpg" && address.scheme == .http)
        #expect(address.options.resizingType == type && address.options.format == format)
        #expect(address.options.width == width && address.options.height == height)
    }

    @Test func `other values of clients are understood`() throws {
        let address = try read("/_/min-width:50/extend_aspect_ratio:True:no/plain/local:///a.png")
        #expect(address.source == "local:///a.png" && address.options.minimumWidth == 50)
        #expect(address.options.extendAspectRatio == ExtendOption(isOn: true, gravity: GravityOption(.north)))
        // A client forgets the dot before the extension. Its True must not be the error.
        let error = try refusal("/insecure/g:no/rs:fit:100:50:True/\(Self.base64)webp")
        #expect(error == nil || error?.message.contains("Option") == false)
    }

    @Test(arguments: [
        "/SIG/fit/300/200/ce/0/aHR0cDovL2ltYWdl/cy5leGFtcGxlL2Nh/dC5qcGc", "/_/fill/1/1/\(base64)", "/_/auto/\(base64)",
        "/_/fill-down/\(base64)", "/_/force/plain/local:///a",
    ])
    func `the retired form without names is refused`(target: String) throws {
        let error = try #require(try refusal(target))
        #expect(error.status == 404 && error.message.contains("names of options"))
    }

    // MARK: Segments

    @Test(arguments: [
        "", "/", "//", "/sig", "/sig/", "sig/plain/local:///a", "/sig//", "///plain/local:///a", "/sig/rs:fit:1:1",
        "/sig/rs:fit:1:1/", "/sig/plain", "/sig/plain/", "/sig/plain/@png", "/sig/rs:fit:1:1//plain/local:///a.png",
        "/sig/plain/local:///a@png@jpg", "/sig/plain/local:///a%2", "/sig/plain/local:///a%zz", "/sig/plain/local:///%",
        "/sig/\(base64).png.jpg", "/sig/.png", "/sig/a", "/sig/ab+c", "/sig/ab=c", "/sig/ab===",
        "/sig/rs/plain/local:///a",
        "/sig/plain/local:///a@JPG", "/sig/plain/local:///a@tif", "/sig/plain/local:///a@nope",
        "/sig/plain/local:///a b", "/sig/plain/local:///a\n", "/sig/plain/local:///a\u{7F}",
        "/info/sig/plain/local:///a",
    ])
    func `a path without a meaning is refused`(target: String) throws {
        let error = try #require(try refusal(target))
        #expect(error.status == 404 && error.publicText == "Invalid URL" && !error.message.isEmpty)
    }

    @Test(arguments: [
        "/_/rs%3Afit%3A50%3A50/plain/local:/a.png", "/_/rs:fit:50:50/plain/local:///a.png?query=/x",
        "//_/rs:fit:50:50/plain/local:///a.png", "/_//rs:fit:50:50/plain/local:///a.png",
        "/_/rs:fit:50:50/plain/local:///a.png@", "/_/rs:fit:50:50/bG9jYWw6Ly8vYS5wbmc",
        "/_/rs:fit:50:50/bG9jYWw6Ly8vYS5wbmc=", "/_/rs:fit:50:50//bG9j/YWw6/Ly8v//YS5w/bmc.",
        "/_/rs:fit:50:50/plain/local%3A%2F%2F%2Fa.png", "/_/rs:fit:50:50/plain/local:///%61.png",
    ])
    func `spellings of one address are equal`(target: String) throws {
        #expect(try read(target) == read("/_/rs:fit:50:50/plain/local:///a.png"))
    }

    @Test(arguments: [
        ("http:/e.example/a", "http://e.example/a"), ("https:/e.example/a", "https://e.example/a"),
        ("local:/a/b", "local:///a/b"), ("s3:/bucket/a", "s3://bucket/a"),
        // imgproxy repairs the last place that looks damaged.
        ("http://e.example/b:/c", "http://e.example/b://c"), ("http://e.example/b://c", "http://e.example/b://c"),
        ("http://e.example/b:/", "http://e.example/b:/"),
        // Only an escape in capitals is damage, and only before the source.
        ("http://e.example/a%253Ab", "http://e.example/a%3Ab"),
    ])
    func `the damage of proxies to plain sources is repaired`(text: String, source: String) throws {
        #expect(try read("/_/w:1/plain/\(text)").source == source)
    }

    @Test func `an escaped colon in lower case is no colon`() throws {
        #expect(try refusal("/_/w%3a1/plain/local:///a")?.status == 404)
    }

    @Test func `only the first segments can be options`() throws {
        let address = try read("/_/w:1/plain/local:///plain/w:2/a")
        #expect(address.options.width == 1 && address.source == "local:///plain/w:2/a")
    }

    @Test func `a file name behind a Base64 source counts only if the server says so`() throws {
        let target = "/_/w:1/\(Self.base64).png/puppy.jpg"
        #expect(try refusal(target)?.status == 404)
        let settings = openSettings { $0.base64IncludesFileName = true }
        let address = try read(target, settings)
        #expect(address.source == "http://images.example/cat.jpg" && address.options.format == .png)
        #expect(try read("/_/w:1/\(Self.base64)", settings).source == "http://images.example/cat.jpg")
        #expect(try read("/_/w:1/plain/local:///a/b", settings).source == "local:///a/b")
    }

    @Test func `a path has the prefix of the server`() throws {
        let settings = openSettings { $0.pathPrefix = "/images/v1/" }
        #expect(try read("/images/v1/_/w:1/plain/local:///a", settings).options.width == 1)
        #expect(try read("/images/v1//_/w:1/plain/local:///a", settings).options.width == 1)
        for target in ["/_/w:1/plain/local:///a", "/images/v1", "/images/v12/_/plain/local:///a", "/images/v1/"] {
            #expect(try refusal(target, settings)?.status == 404)
        }
    }

    @Test func `the arguments of options have the separator of the server`() throws {
        let settings = openSettings { $0.argumentSeparator = "--" }
        #expect(try read("/_/rs--fill--30--20/plain/local:///a", settings).options.height == 20)
        #expect(try refusal("/_/rs:fill:30:20/plain/local:///a", settings)?.status == 404)
        #expect(throws: AddressSettingsError.self) { try AddressParser(openSettings { $0.argumentSeparator = "" }) }
    }

    @Test func `the extension of the source wins over the option, except for a raw source`() throws {
        #expect(try readOptions("f:png", suffix: "@jpg").format == .jpeg)
        #expect(try readOptions("f:png").format == .png)
        #expect(try readOptions("f:png/raw:1", suffix: "@nope").format == .png)
    }

    @Test(arguments: FormatName.allCases)
    func `every format has a name`(format: FormatName) throws {
        #expect(try readOptions("f:\(format.rawValue)").format == format)
        #expect(try readOptions("w:1", suffix: "@\(format.rawValue)").format == format)
    }

    @Test func `a URL is not longer than the limit`() throws {
        let name = String(repeating: "a", count: AddressParser.longestTarget)
        let error = try #require(try refusal("/_/plain/local:///\(name)"))
        #expect(error.status == 404 && error.message.contains("longer"))
    }

    @Test func `the number of options is bounded, also by presets that multiply`() throws {
        let many = String(repeating: "w:1/", count: 1_001)
        #expect(try refusal("/_/\(many)plain/local:///a")?.message.contains("1000") == true)
        let settings = openSettings {
            $0.presets = ["a": "pr:b:b:b:b:b:b:b:b:b:b", "b": "pr:c:c:c:c:c:c:c:c", "c": "w:1/w:2/w:3"]
        }
        #expect(try refusal("/_/pr:a/plain/local:///a", settings) == nil)
        #expect(try refusal("/_/pr:a:a:a:a/plain/local:///a", settings)?.status == 404)
    }

    // MARK: Presets

    @Test func `options apply in their order, after the default preset`() throws {
        let settings = openSettings {
            $0.presets = ["default": "w:10/h:10/q:50", "small": "w:20/q:60"]
            $0.defaults.stripsMetadata = false
        }
        let options = try read("/_/h:30/pr:small/q:70/plain/local:///a", settings).options
        #expect(options.width == 20 && options.height == 30 && options.quality == 70 && !options.stripsMetadata)
        #expect(try read("/_/pr:small/plain/local:///a", settings).options.quality == 60)
        #expect(try read("/_/plain/local:///a", settings).options.width == 10)
    }

    @Test func `presets contain presets, and a loop has no effect`() throws {
        let settings = openSettings { $0.presets = ["a": "blur:0.2/pr:b", "b": "q:50/pr:a"] }
        let parser = try AddressParser(settings)
        let options = try parser.parse("/_/pr:a/plain/local:///a", now: testTime).options
        #expect(options.blur == 0.2 && options.quality == 50)
        #expect(parser.warnings.count == 2)
    }

    @Test func `an unknown preset is refused`() throws {
        let error = try #require(try refusal("/_/pr:nope/plain/local:///a"))
        #expect(error.status == 404 && error.message.contains("nope"))
    }

    @Test(arguments: ["nope:1", "w:-1", "pr:missing", "w", "w:9000", "mrd:9", "w:1/ h:2", "rs:fit:1:1:1:1:1:1:1:1"])
    func `a preset with a mistake stops the start`(text: String) {
        #expect(throws: AddressSettingsError.self) { try AddressParser(openSettings { $0.presets = ["p": text] }) }
    }

    @Test func `a server may take the names of presets only`() throws {
        let settings = openSettings {
            $0.acceptsOnlyPresets = true
            $0.presets = ["a": "w:10", "b": "h:20", "default": "q:33"]
        }
        let options = try read("/_/a:b/plain/local:///a@png", settings).options
        #expect(options.width == 10 && options.height == 20 && options.quality == 33 && options.format == .png)
        #expect(try read("/_/a/\(Self.base64).png", settings).source == "http://images.example/cat.jpg")
        for target in ["/_/w:10/plain/local:///a", "/_/a/w:10/plain/local:///a", "/_/plain/local:///a", "/_/a"] {
            #expect(try refusal(target, settings)?.status == 404)
        }
    }

    // MARK: Permissions

    @Test func `only allowed options pass, except within presets`() throws {
        let settings = openSettings {
            $0.allowedOptions = ["w", "h", "pr"]
            $0.presets = ["soft": "blur:1"]
        }
        #expect(try refusal("/_/w:9/blur:1/plain/local:///a", settings)?.status == 404)
        #expect(try refusal("/_/width:9/plain/local:///a", settings)?.status == 404)
        #expect(try read("/_/w:9/pr:soft/plain/local:///a", settings).options.blur == 1)
    }

    @Test func `the allowed options exist, or are those of imgproxy Pro`() throws {
        _ = try AddressParser(openSettings { $0.allowedOptions = ["resize", "rs", "autoquality"] })
        let error = #expect(throws: AddressSettingsError.self) {
            try AddressParser(openSettings { $0.allowedOptions = ["q", "resise"] })
        }
        #expect(error?.message.contains("\"resise\" does not exist") == true)
    }

    @Test(arguments: ["msr:0.00001", "mafr:1", "msfs:1", "maf:1", "mrd:1", "max_result_dimension:1"])
    func `a limit is changed only if the server allows it`(option: String) throws {
        let target = "/_/\(option)/plain/local:///a"
        let error = try #require(try refusal(target))
        #expect(error.status == 403 && error.publicText == "Invalid URL")
        #expect(try refusal(target, openSettings { $0.allowsSecurityOptions = true }) == nil)
    }

    @Test func `a URL expires`() throws {
        #expect(try refusal("/_/exp:1609448400/plain/local:///a")?.status == 404)
        #expect(try refusal("/_/exp:\(testTime - 1)/plain/local:///a")?.status == 404)
        #expect(try read("/_/exp:\(testTime)/plain/local:///a").options.expires == testTime)
        #expect(try read("/_/exp:0/plain/local:///a").options.expires == nil)
        #expect(try read("/_/exp:-5/plain/local:///a").options.expires == nil)
        #expect(try refusal("/_/exp:soon/plain/local:///a")?.status == 404)
        #expect(throws: AddressError.self) {
            try AddressParser(openSettings()).parse("/_/exp:1/plain/local:///a", now: .max)
        }
    }

    // MARK: Any text

    @Test func `no text is a trap`() throws {
        let settings = openSettings { settings in
            settings.allowsSecurityOptions = true
            settings.presets = ["default": "q:5", "a": "w:1/pr:a"]
            settings.replacements = [SourceReplacement("http://*/a*", with: "http://${1}/${2}")]
        }
        let parser = try AddressParser(settings)
        let pieces =
            OptionName.allCases.map(\.rawValue) + [
                "/", ":", "@", ".", "%", "-", "0", "1", "9999999999999999999999", "1e308", "plain/", "http://",
                "local:///",
                "ce", "fp", "é", "\u{0}", "%3A", "aHR0", "", "f", "sm", "jpg", "=", "?", "#", "[", "]", "..", "*",
                "ff00aa",
            ]
        var generator = SeededGenerator(seed: 7)
        var count = 0
        for _ in 0..<20_000 {
            var target = "/_/"
            for _ in 0..<Int.random(in: 1..<12, using: &generator) {
                target += pieces.randomElement(using: &generator) ?? ""
                if Bool.random(using: &generator) { target += [":", "/"].randomElement(using: &generator) ?? "" }
            }
            if Bool.random(using: &generator) { target += "/plain/http://h/a" }
            guard let address = try? parser.parse(target, now: testTime) else { continue }
            count += 1
            let text = address.source + (address.objectVersion ?? "") + address.options.canonicalText
            #expect(text.utf8.allSatisfy { $0 >= 0x20 || $0 == UInt8(ascii: "\n") })
        }
        #expect(count > 20)
    }
}
