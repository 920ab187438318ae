// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The formats of served images, by the URL, by `Accept`, and by the source.
@Suite(.waiting, .timeLimit(.minutes(10))) struct ServedFormatTests {
    @Test(arguments: [
        (ImageFormat.jpeg, PixelFormat.rgb8, "image/jpeg"), (.png, .rgb8, "image/png"), (.png, .rgba8, "image/png"),
        (.gif, .rgb8, "image/gif"), (.webp, .rgb8, "image/jpeg"), (.webp, .rgba8, "image/png"),
    ])
    func `without a format in the URL, the format is the source's if it is preferred`(
        format: ImageFormat,
        pixels: PixelFormat,
        type: String
    ) async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(format, pixels))]) { fixture in
            let response = try await fixture.image("w:50")
            #expect(response["Content-Type"] == type)
            #expect(response["Vary"] == nil)
            #expect(try response.decoder().header.format.mediaType == type)
        }
    }

    @Test(arguments: ["jpg", "jpeg", "png", "webp", "gif"])
    func `each format can be asked for by an extension and by an option`(name: String) async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png))]) { fixture in
            let type = "image/\(name == "jpg" ? "jpeg" : name)"
            for response in [
                try await fixture.image("w:50", suffix: "@\(name)"), try await fixture.image("w:50/f:\(name)"),
                try await fixture.image("w:50/f:png", suffix: "@\(name)"),
            ] {
                #expect(response["Content-Type"] == type)
                #expect(try response.decoder().header.format.mediaType == type)
                #expect(try response.size() == "50x25")
            }
        }
    }

    @Test(arguments: ["avif", "jxl", "heic", "tiff", "bmp", "ico", "svg"])
    func `a format that cannot be written is refused before the source is loaded`(name: String) async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png))]) { fixture async throws in
            #expect(try await fixture.image("", suffix: "@\(name)").status == 422)
            #expect(fixture.origin.requestCount(for: "/a") == 0)
        }
    }

    @Test(arguments: ["JPG", "tif", "exe", "jpg.png", "best", "mp4", "pdf"])
    func `an unknown format is an invalid URL`(name: String) async throws {
        try await ServerFixture.run { fixture in
            let response = try await fixture.image("", suffix: "@\(name)")
            #expect(response.status == 404)
            #expect(response.text == "Invalid URL\n")
        }
    }

    @Test func `a transparent image becomes opaque on white, or on the background of the URL`() async throws {
        let clear = try PixelBuffer.make(.rgba8, width: 40, height: 40) { _, _, _ in 0 }
        let png = Array(try PNGCoder().encode(Image(pixels: clear), as: .png, options: EncodeOptions()))
        try await ServerFixture.run(["/a": .image(png)]) { fixture in
            let white = try (try await fixture.image("w:20", suffix: "@jpg")).decoded()
            #expect((0..<3).allSatisfy { white.pixels.sample(10, 10, $0) >= 253 })
            let red = try (try await fixture.image("w:20/bg:f00", suffix: "@jpg")).decoded()
            #expect(red.pixels.sample(10, 10, 0) > 250 && red.pixels.sample(10, 10, 1) < 5)
        }
    }

    @Test func `an edge of a transparent image gets no dark fringe`() async throws {
        // White pixels, and black ones that nobody can see.
        let pixels = try PixelBuffer.make(.rgba8, width: 64, height: 64) { column, _, _ in column < 32 ? 255 : 0 }
        let png = Array(try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions()))
        try await ServerFixture.run(["/a": .image(png)]) { fixture in
            let image = try (try await fixture.image("rs:force:9:9", suffix: "@jpg")).decoded()
            #expect((0..<9).allSatisfy { image.pixels.sample($0, 4, 0) >= 250 })
        }
    }

    // MARK: Accept

    private static let browser = "image/avif,image/webp,image/apng,*/*;q=0.8"

    @Test(arguments: [
        ("image/webp", true), (browser, true), ("image/webp;q=0.1, image/jpeg", true), ("IMAGE/WEBP", true),
        ("image/webp;q=0", false), ("image/*", false), ("*/*", false), ("image/jpeg", false), ("", false),
        ("image/webpx", false), ("text/html, image/webp;q=0.000", false),
    ])
    func `a client that names WebP receives it if the server prefers it`(accept: String, isWebP: Bool) async throws {
        let responses = ["/a": FaultyResponse.image(try ServerImages.jpeg())]
        let change: (inout ImageServer.Configuration) -> Void = { $0.images.prefersWebP = true }
        try await ServerFixture.run(responses, change: change) { fixture in
            let response = try await fixture.image("w:50", ["Accept": accept])
            #expect(response["Content-Type"] == (isWebP ? "image/webp" : "image/jpeg"))
            #expect(response["Vary"] == "Accept")
        }
    }

    @Test func `one URL never serves the format of one client to another`() async throws {
        let responses = ["/a": FaultyResponse.image(try ServerImages.jpeg())]
        let change: (inout ImageServer.Configuration) -> Void = { $0.images.prefersWebP = true }
        try await ServerFixture.run(responses, change: change) { fixture in
            var tags: [String: Set<String>] = [:]
            for accept in [Self.browser, "image/jpeg", "image/webp", "*/*", Self.browser, "image/jpeg"] {
                let response = try await fixture.image("w:50", ["Accept": accept])
                #expect(response["Content-Type"] == (accept.contains("webp") ? "image/webp" : "image/jpeg"))
                tags[response["Content-Type"] ?? "", default: []].insert(response["ETag"] ?? "")
            }
            #expect(tags.values.allSatisfy { $0.count == 1 } && tags["image/webp"] != tags["image/jpeg"])
            // A thousand spellings of Accept must not fill the cache.
            #expect(await fixture.statistics.encode.count == 2)
            #expect(fixture.origin.requestCount(for: "/a") == 1)
        }
    }

    @Test func `a format in the URL wins over a preference, and an enforced one over the URL`() async throws {
        let responses = ["/a": FaultyResponse.image(try ServerImages.jpeg())]
        let fields = ["Accept": Self.browser] as HeaderFields
        try await ServerFixture.run(responses, change: { $0.images.prefersWebP = true }) { fixture in
            let response = try await fixture.image("w:50", suffix: "@png", fields)
            #expect(response["Content-Type"] == "image/png")
            #expect(response["Vary"] == nil)
        }
        try await ServerFixture.run(responses, change: { $0.images.enforcesWebP = true }) { fixture in
            let enforced = try await fixture.image("w:50", suffix: "@png", fields)
            #expect((enforced["Content-Type"], enforced["Vary"]) == ("image/webp", "Accept"))
            let other = try await fixture.image("w:50", suffix: "@png")
            #expect((other["Content-Type"], other["Vary"]) == ("image/png", "Accept"))
            // A client that takes WebP gets an image from the same URL.
            #expect(try await fixture.image("w:50", suffix: "@avif", fields).status == 200)
            let refused = try await fixture.image("w:50", suffix: "@avif")
            #expect((refused.status, refused["Vary"]) == (422, "Accept"))
        }
    }

    // MARK: Animations

    @Test(arguments: [ImageFormat.gif, .webp])
    func `an animation becomes a still image by default, and stays animated if the server allows it`(
        source: ImageFormat
    ) async throws {
        let responses = ["/a": FaultyResponse.image(try ServerImages.animation(source))]
        try await ServerFixture.run(responses) { fixture in
            let header = try (try await fixture.image("w:20", suffix: "@gif")).decoder().header
            #expect((header.animation.frameCount, header.pixelWidth) == (1, 20))
        }
        try await ServerFixture.run(responses, change: { $0.images.maximumFrames = 2 }) { fixture in
            for suffix in ["@gif", "@webp"] {
                let header = try (try await fixture.image("w:20", suffix: suffix)).decoder().header
                #expect((header.animation.frameCount, header.pixelWidth, header.pixelHeight) == (2, 20, 10))
                #expect(header.animation.durations == [100, 200])
            }
            // A border differs from frame to frame.
            let trimmed = try (try await fixture.image("t:10/w:20", suffix: "@gif")).decoder().header
            #expect(trimmed.animation.frameCount == 1)
            // JPEG has no animations, so without a format in the URL the GIF stays one.
            #expect(try (try await fixture.image("w:20")).decoder().header.animation.frameCount == 2)
            #expect(try (try await fixture.image("w:20", suffix: "@jpg")).decoder().header.animation.frameCount == 1)
        }
    }

    @Test(arguments: [(10, 422), (1, 200)])
    func `the limit of pixels counts all frames, unless results are still images`(frames: Int, status: Int) async throws
    {
        let responses = ["/a": FaultyResponse.image(try ServerImages.animation(.gif))]
        let change: (inout ImageServer.Configuration) -> Void = {
            $0.images.maximumFrames = frames
            $0.loader.limits.maximumAnimationPixels = 40 * 20 * 2
            $0.addresses.allowsSecurityOptions = true
        }
        try await ServerFixture.run(responses, change: change) { fixture async throws in
            #expect(try await fixture.image("w:20", suffix: "@gif").status == status)
            #expect(try await fixture.image("w:20/msr:0.0016", suffix: "@gif").status == status)
        }
    }

    // MARK: Quality

    @Test func `a lower quality makes a smaller file, and the quality of a format comes before the general one`()
        async throws
    {
        try await ServerFixture.run(["/a": .image(Array(try Fixtures.data("flower.jpg")))]) { fixture in
            func count(_ options: String) async throws -> Int {
                try await fixture.image("w:200/\(options)", suffix: "@jpg").body.count
            }
            let (low, high) = (try await count("q:1"), try await count("q:99"))
            #expect(low * 3 < high)
            #expect(try await count("fq:jpg:1") == low)
            #expect(try await count("fq:webp:1") == count("cb:none"))
            #expect(try await count("q:99/fq:jpg:1") == high)
            #expect(try await count("q:0") == count("q:80"))
        }
    }

    @Test(arguments: ["q:101", "q:-1", "q:x", "q:", "fq:jpg", "fq:jpg:101"])
    func `a quality out of its range is an invalid URL`(options: String) async throws {
        try await ServerFixture.run { fixture async throws in #expect(try await fixture.image(options).status == 404) }
    }

    @Test func `a result keeps below its byte limit if it can, and is as small as possible otherwise`() async throws {
        try await ServerFixture.run(["/a": .image(Array(try Fixtures.data("flower.jpg")))]) { fixture in
            let whole = try await fixture.image("w:300", suffix: "@jpg").body.count
            let half = try await fixture.image("w:300/mb:\(whole / 2)", suffix: "@jpg")
            #expect(half.status == 200 && half.body.count <= whole / 2)
            let impossible = try await fixture.image("w:300/mb:10", suffix: "@jpg")
            #expect(impossible.status == 200 && impossible.body.count < half.body.count)
            #expect(try await fixture.image("w:50/mb:10", suffix: "@png").status == 200)
        }
    }

    // MARK: Sources

    @Test(arguments: ["camera.jpg", "camera.png", "camera.webp", "flower.webp", "kodak-3.png"])
    func `photographs of all kinds are served`(name: String) async throws {
        try await ServerFixture.run(["/a": .image(Array(try Fixtures.data(name)))]) { fixture in
            for suffix in ["@jpg", "@png", "@webp", "@gif"] {
                let response = try await fixture.image("rs:fill:32:32", suffix: suffix)
                #expect(response.status == 200)
                #expect(try response.size() == "32x32")
            }
        }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8])
    func `gray, transparent and small images are served in all formats`(pixels: PixelFormat) async throws {
        for (width, height) in [(1, 1), (1, 50), (50, 1), (7, 5)] {
            let png = try ServerImages.encoded(.png, pixels, width: width, height: height)
            try await ServerFixture.run(["/a": .image(png)]) { fixture in
                for suffix in ["@jpg", "@png", "@webp", "@gif"] {
                    let response = try await fixture.image("w:3/h:3/bl:1", suffix: suffix)
                    #expect(response.status == 200, "\(width)x\(height) \(suffix)")
                }
            }
        }
    }
}
