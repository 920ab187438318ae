// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TintypeImgproxy

/// The values of options.
@Suite struct OptionTests {
    typealias Change = @Sendable (inout ProcessingOptions) -> Void

    struct Case: Sendable, CustomTestStringConvertible {
        let text: String
        let change: Change

        init(_ text: String, _ change: @escaping Change) {
            self.text = text
            self.change = change
        }

        var testDescription: String { self.text }
    }

    private static let size: [Case] = [
        Case("rs:fill:30:20:1:1:no:5:6") { options in
            options.resizingType = .fill
            (options.width, options.height, options.enlarges) = (30, 20, true)
            options.extend = ExtendOption(isOn: true, gravity: GravityOption(.north, x: 5, y: 6))
        },
        Case("resize:::20") { $0.height = 20 },
        Case("w:5/h:6/el:1/ex:1:so/rs:::::") { options in
            (options.width, options.height, options.enlarges) = (5, 6, true)
            options.extend = ExtendOption(isOn: true, gravity: GravityOption(.south))
        },
        Case("rs:auto") { $0.resizingType = .auto },
        Case("s:30:20:t") { ($0.width, $0.height, $0.enlarges) = (30, 20, true) },
        Case("size::20::1:we") { options in
            options.height = 20
            options.extend = ExtendOption(isOn: true, gravity: GravityOption(.west))
        },
        Case("rt:force") { $0.resizingType = .force }, Case("resizing_type:fill-down") { $0.resizingType = .fillDown },
        Case("w:8192") { $0.width = 8_192 }, Case("width:+7") { $0.width = 7 }, Case("height:9/h:0") { $0.height = 0 },
        Case("mw:5/mh:6") { ($0.minimumWidth, $0.minimumHeight) = (5, 6) },
        Case("min-width:5/min-height:6") { ($0.minimumWidth, $0.minimumHeight) = (5, 6) },
        Case("z:2") { ($0.horizontalZoom, $0.verticalZoom) = (2, 2) },
        Case("zoom:2:0.5") { ($0.horizontalZoom, $0.verticalZoom) = (2, 0.5) },
        Case("dpr:1.5e0") { $0.pixelRatio = 1.5 }, Case("enlarge:True") { $0.enlarges = true },
        Case("el:1/el:yes") { $0.enlarges = false }, Case("el:1/el:") { $0.enlarges = false },
        Case("exar:1:fp:0.1:0.2") { options in
            options.extendAspectRatio = ExtendOption(isOn: true, gravity: GravityOption(.focusPoint, x: 0.1, y: 0.2))
        },
        Case("extend_ar:TRUE") { $0.extendAspectRatio.isOn = true },
        Case("extend_aspect_ratio:1:ea:5/extend_aspect_ratio:1") { options in
            options.extendAspectRatio = ExtendOption(isOn: true, gravity: GravityOption(.east, x: 5))
        },
    ]

    private static let place: [Case] = [
        Case("g:no:5:5/g:so") { $0.gravity = GravityOption(.south, x: 5, y: 5) },
        Case("g:no:5:5/g:so::6") { $0.gravity = GravityOption(.south, x: 5, y: 6) },
        Case("gravity:fp:0:1") { $0.gravity = GravityOption(.focusPoint, x: 0, y: 1) },
        Case("g:sm") { $0.gravity = GravityOption(.smart) },
        Case("g:nowe:-0.5:-10") { $0.gravity = GravityOption(.northWest, x: -0.5, y: -10) },
        Case("c:100") { $0.crop.width = 100 }, Case("crop:0.5:20.7") { ($0.crop.width, $0.crop.height) = (0.5, 20) },
        Case("c:9:9:noea:1:2") { options in
            options.crop = CropOption(width: 9, height: 9, gravity: GravityOption(.northEast, x: 1, y: 2))
        },
        Case("c:9:9:so/c:8") { options in
            options.crop = CropOption(width: 8, height: 9, gravity: GravityOption(.south))
        },
        Case("t:10") { $0.trim = TrimOption(threshold: 10) },
        Case("trim:0.5:f0a:1:t") { options in
            let color = ColorOption(red: 255, green: 0, blue: 170)
            options.trim = TrimOption(
                threshold: 0.5,
                color: color,
                isEqualHorizontally: true,
                isEqualVertically: true
            )
        },
        Case("t:10/t:") { $0.trim = nil },
        Case("t:10::1") { $0.trim = TrimOption(threshold: 10, isEqualHorizontally: true) },
        Case("pd:1") { $0.padding = PaddingOption(top: 1, right: 1, bottom: 1, left: 1) },
        Case("pd:1:2") { $0.padding = PaddingOption(top: 1, right: 2, bottom: 1, left: 2) },
        Case("padding:1:2:3") { $0.padding = PaddingOption(top: 1, right: 2, bottom: 3, left: 2) },
        Case("pd:1:2:3:4") { $0.padding = PaddingOption(top: 1, right: 2, bottom: 3, left: 4) },
        Case("pd:::3") { $0.padding = PaddingOption(bottom: 3) },
        Case("ar:0") { $0.autoRotates = false }, Case("auto_rotate:") { $0.autoRotates = false },
        Case("rot:450") { $0.rotation = 90 }, Case("rotate:-90") { $0.rotation = 270 },
        Case("fl:1:1") { ($0.flipsHorizontally, $0.flipsVertically) = (true, true) },
        Case("flip::1") { $0.flipsVertically = true },
    ]

    private static let look: [Case] = [
        Case("bg:fff") { $0.background = ColorOption(red: 255, green: 255, blue: 255) },
        Case("background:0A0b0C") { $0.background = ColorOption(red: 10, green: 11, blue: 12) },
        Case("bg:1:2:255") { $0.background = ColorOption(red: 1, green: 2, blue: 255) },
        Case("bg:fff/bg:") { $0.background = nil }, Case("bl:0.5") { $0.blur = 0.5 },
        Case("blur:100") { $0.blur = 100 },
        Case("sh:2") { $0.sharpen = 2 }, Case("sharpen:0") { $0.sharpen = 0 }, Case("pix:9") { $0.pixelate = 9 },
        Case("wm:0.5") { $0.watermark = WatermarkOption(opacity: 0.5) },
        Case("watermark:1:re:10:20:0.2:x:y") { options in
            options.watermark = WatermarkOption(opacity: 1, position: GravityOption(.tile, x: 10, y: 20), scale: 0.2)
        },
        Case("wm:1::5") { $0.watermark = WatermarkOption(opacity: 1, position: GravityOption(.center, x: 5)) },
        Case("wm:1/wm:0") { $0.watermark = nil },
    ]

    private static let file: [Case] = [
        Case("sm:0") { $0.stripsMetadata = false }, Case("keep_copyright:f") { $0.keepsCopyright = false },
        Case("scp:False") { $0.stripsColorProfile = false }, Case("ph:1") { $0.preservesHDR = true },
        Case("eth:1") { $0.prefersEmbeddedThumbnail = true }, Case("q:100") { $0.quality = 100 },
        Case("fq:webp:70:jpg:60/fq:webp:50") { $0.formatQuality = [.webp: 50, .jpeg: 60] },
        Case("mb:1000") { $0.maximumByteCount = 1_000 }, Case("f:jpg") { $0.format = .jpeg },
        Case("ext:webp") { $0.format = .webp },
        Case("skp:png:gif/skp:jpg") { $0.skippedFormats = [.png, .gif, .jpeg] },
        Case("raw:1") { $0.isRaw = true }, Case("cb:v1") { $0.cacheBuster = "v1" },
        Case("cachebuster:v1/cb:") { $0.cacheBuster = "" }, Case("exp:4000000000") { $0.expires = 4_000_000_000 },
        Case("fn:cat%20a") { $0.fileName = "cat%20a" }, Case("filename:Y2F0:1") { $0.fileName = "cat" },
        Case("fn:Y2F0:0") { $0.fileName = "Y2F0" }, Case("fn:a/fn:") { $0.fileName = nil },
        Case("att:1") { $0.isAttachment = true }, Case("msr:0.00001") { $0.limits.sourcePixelCount = 10 },
        Case("mafr:2") { $0.limits.framePixelCount = 2_000_000 }, Case("msfs:5") { $0.limits.sourceByteCount = 5 },
        Case("maf:7") { $0.limits.frameCount = 7 }, Case("mrd:50") { $0.limits.resultSide = 50 },
        Case("w:10000/mrd:20000") { ($0.width, $0.limits.resultSide) = (10_000, 20_000) },
        Case("w:65535/mrd:0") { ($0.width, $0.limits.resultSide) = (65_535, 0) },
    ]

    @Test(arguments: size + place + look + file)
    func `an option sets its values`(expected: Case) throws {
        var options = ProcessingOptions()
        expected.change(&options)
        #expect(try readOptions(expected.text) == options)
    }

    @Test(arguments: [
        "w:", "w:-1", "w:1.5", "w:x", "w:1_0", "w:0x10", "w: 1", "w:65536", "w:8193", "pd:8193", "mw:9000", "w:1:2",
        "w:99999999999999999999", "w:00000000000000000000001", "h:", "rs:nope", "rs:fit:x",
        "rs:fit:1:1:1:1:1:1:1:1",
        "rs:fit:1:1:0:1:", "rs:fit:1:1:0:1:nope", "rs:fit:1:1:0::sm", "s:1:1:1:1:1:1:1:1", "rt:", "rt:Fit", "z:", "z:0",
        "z:-1", "z:nan", "z:inf", "z:1e999", "z:101", "z:1e-9", "z:1:0", "z:1:1:1", "z:0x1p1", "dpr:", "dpr:0",
        "dpr:8.1",
        "dpr:NaN", "dpr:infinity", "ex:1:sm", "ex:1:re", "ex:1:", "ex:1:no:x", "exar:1:sm", "g:", "g:re", "g:xx",
        "g:fp",
        "g:fp:0.5", "g:fp:0.5:1.1", "g:fp:-0.1:0", "g:fp::1", "g:sm:1", "g:sm:", "g:no:nan", "g:no:1:inf", "g:no:1e7",
        "g:no:1:1:1", "c:", "c:100:", "c:-1", "c:nan:1", "c:9:9:", "c:9:9:re", "c:1e308", "c:1:1:ce:1:1:1", "t:-1",
        "t:nan",
        "t:10:zz", "t:10:ffff", "t:1:fff:1:1:1", "pd:-1", "pd:x", "pd:1:2:3:4:5", "rot:", "rot:45", "rot:x",
        "rot:9223372036854775807", "fl:1:1:1", "bg:12345", "bg:#ffffff", "bg:ggg", "bg:1:2", "bg:1:2:256", "bg:1:2:3:4",
        "bg:1:2:", "bl:", "bl:-1", "bl:101", "bl:nan", "sh:1e3", "pix:-1", "pix:8193", "wm:", "wm:1.1", "wm:-0.1",
        "wm:x",
        "wm:1:sm", "wm:1:fp:0.5:0.5", "wm:1:ce:x", "wm:1:ce:0:0:-1", "wm:1:ce:0:0:11", "wm:1:1:1:1:1:1:1:1", "q:",
        "q:101",
        "q:-1", "q:1.5", "fq:", "fq:webp", "fq:webp:x", "fq:nope:5", "fq:webp:5:jpg", "mb:-1", "mb:x", "f:", "f:JPG",
        "f:tif", "f:nope", "skp:", "skp:nope", "skp:png:", "exp:", "exp:x", "fn:a:1:2", "fn:*:1", "fn:_w:1", "fn:DQo:1",
        "fn:AA:1", "fn:woU:1", "cb:a:b", "pr:", "msr:0", "msr:-1", "msr:x", "maf:0", "mrd:-1", "msfs:-1", "nope:1",
        ":1", "W:1",
        "mw_:1", "min_width:1", "gif_options:1",
    ])
    func `a wrong value is refused`(text: String) throws {
        let settings = openSettings { $0.allowsSecurityOptions = true }
        let error = try #require(try refusal("/_/\(text)/plain/local:///a.png", settings))
        #expect(error.status == 404 && error.publicText == "Invalid URL" && error.message.hasSuffix("."))
    }

    @Test(arguments: [
        ("ra:lanczos3", "ra"), ("blur_areas:1", "blur_areas"), ("a:1", "a"), ("watermark_url:x", "watermark_url"),
        ("page:1", "page"), ("f:best", "best"), ("f:pdf", "pdf"), ("skp:mp4", "mp4"), ("g:obj:face", "obj"),
        ("g:objw:face:2", "objw"), ("wm:1:ch", "ch"),
    ])
    func `an option of imgproxy Pro is refused by name`(text: String, name: String) throws {
        let error = try #require(try refusal("/_/\(text)/plain/local:///a.png"))
        #expect(error.status == 404 && error.message.contains("\"\(name)\" is"))
        #expect(error.message.contains("of imgproxy Pro, which Tintype does not have."))
    }

    @Test func `no name of imgproxy Pro hides an option`() {
        #expect(OptionName.proNames.allSatisfy { OptionName(urlName: $0) == nil })
        #expect(OptionName.allCases.allSatisfy { OptionName(urlName: $0.rawValue) == $0 })
    }

    @Test(arguments: ["rs:fit:99999:1", "w:65536", "pd:100000", "mh:9223372036854775807"])
    func `a side that is too long is refused with the limit of the server`(text: String) throws {
        let error = try #require(try refusal("/_/\(text)/plain/local:///a.png"))
        #expect(error.message.hasSuffix("is over the limit of 8192."), "\(error.message)")
    }

    @Test func `a message shows only the start of a long value`() throws {
        let error = try #require(try refusal("/_/w:\(String(repeating: "9", count: 5_000))/plain/local:///a.png"))
        #expect(error.message.utf8.count < 200)
    }

    // MARK: Canonical text

    @Test(arguments: [
        ("rs:fit:50:50", "h:50/w:50"), ("w:1", "width:01"), ("dpr:1", "q:0"), ("pd:1", "pd:1:1:1:1"),
        ("bg:f0f", "bg:255:0:255"),
        ("rot:90", "rot:-270"), ("rot:360", "w:0"), ("skp:png:gif", "skp:gif/skp:png:gif"),
        ("fq:png:1:gif:2", "fq:gif:2:png:1"),
        ("g:ce:-0:0", "w:0"), ("pix:1", "bl:0"), ("ex:0:no", "w:0"), ("c:0:0:no", "w:0"),
        ("c:9:9/g:no", "c:9:9:no/g:no"),
        ("t:5/t:", "wm:1/wm:0"), ("g:no:5/g:sm", "g:sm"), ("raw:1/w:5", "raw:1"), ("exp:4000000000/fn:a/att:1", "w:0"),
        ("f:jpg", "f:jpeg"), ("c:9.9", "c:9"), ("cb:a/cb:", "w:0"), ("z:2", "z:2:2"), ("mrd:8192", "w:0"),
        ("mrd:0", "mrd:65535"),
    ])
    func `options of equal meaning have equal texts`(first: String, second: String) throws {
        #expect(try readOptions(first).canonicalText == readOptions(second).canonicalText)
    }

    @Test func `options of different meaning have different texts`() throws {
        let texts =
            [
                "w:1", "h:1", "mw:1", "mh:1", "rs:fill", "rs:auto", "z:2", "z:1:2", "dpr:2", "el:1", "ex:1", "ex:1:no",
                "exar:1",
                "g:no", "g:no:1", "g:no:0:1", "g:sm", "c:1", "c:0:1", "c:1:1", "c:1:1:sm", "t:1", "t:1:fff", "t:1::1",
                "t:1:::1",
                "pd:1", "pd:1:0", "pd:0:1", "ar:0", "rot:90", "rot:180", "fl:1", "fl:0:1", "bg:fff", "bl:1", "sh:1",
                "pix:2",
                "wm:1", "wm:0.5", "wm:1:no", "wm:1:ce:0:0:1", "sm:0", "kcr:0", "scp:0", "ph:1", "eth:1", "q:1",
                "fq:png:1",
                "mb:1", "f:png", "skp:png", "raw:1", "cb:a", "cb:b", "cb:png", "msr:1", "mafr:1", "msfs:1", "maf:2",
                "mrd:1", "",
            ]
        let canonical = try texts.map { try readOptions($0.isEmpty ? "w:0" : $0).canonicalText }
        #expect(Set(canonical).count == texts.count)
        #expect(canonical.last?.isEmpty == true)
    }
}
