// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// The sizes and the places of served images, decoded.
@Suite(.waiting, .timeLimit(.minutes(10))) struct ServedGeometryTests {
    /// Options with the size of the result from an image of 200x100 pixels.
    private static let sizes: [(options: String, size: String)] = [
        // imgproxy's own tests
        ("rs:fit:50:50", "50x25"), ("rs:fit:50:20", "40x20"), ("rs:fit:20:50", "20x10"), ("rs:fit:300:300", "200x100"),
        ("rs:fit:0:50", "100x50"), ("rs:fit:50:0", "50x25"), ("rs:fit:0:200", "200x100"),
        ("rs:fit:300:125/el:1", "250x125"), ("rs:fit:0:200/el:1", "400x200"), ("rs:fit:20:50/ex:1", "20x50"),
        ("rs:fit:50:50/ex:1", "50x50"), ("rs:fit:0:200/ex:1", "200x200"), ("rs:fit:300:125/exar:1", "240x100"),
        ("rs:fit:300:300/exar:1", "200x200"), ("rs:fit:250:500/exar:1", "200x400"), ("rs:fit:0:200/exar:1", "200x100"),
        ("rs:fill:50:20", "50x20"), ("rs:fill:300:50", "200x50"), ("rs:fill:300:300", "200x100"),
        ("rs:fill:250:300/el:1", "250x300"), ("rs:fill:100:300/ex:1", "100x300"), ("rs:fill:300:300/exar:1", "200x200"),
        ("rs:fill-down:300:300", "100x100"), ("rs:fill-down:300:125", "200x83"), ("rs:fill-down:250:300", "83x100"),
        ("rs:fill-down:300:0", "200x100"), ("mrd:50/rs:fit:150:0", "50x25"), ("mrd:50/rs:fill:1000:50", "50x13"),
        ("mrd:50/rs:fill-down:100:1000", "5x50"), ("mrd:200/rs:fit:100:100/pd:100:200:300:400", "200x129"),
        ("mrd:100/rs:fit:100:150/rot:90", "50x100"), ("rs:fill:100:26/dpr:2", "200x52"),
        ("rs:fill:26:100/g:no:5/dpr:2", "26x100"), ("c:50:50:ce:10:10/dpr:0.5", "25x25"),
        ("dpr:2/pd:20:30:40:10/el:1", "480x320"), ("w:500/h:500/ex:1:no:0:5/dpr:0.5", "250x250"),
        // By imgproxy's rules
        ("rs:auto:50:50", "50x50"), ("rs:auto:20:50", "20x10"), ("rs:force:50:50", "50x50"),
        ("rs:force:50:0", "50x100"), ("rs:force:300:50", "200x33"), ("z:2", "200x100"), ("z:2/el:1", "400x200"),
        ("w:50/z:2", "100x50"), ("w:50/mw:80", "50x40"), ("c:0.5:0.5/w:50", "50x25"), ("w:50/pd:10/dpr:2", "140x90"),
        ("w:150/dpr:2", "200x100"), ("w:300/dpr:0.5", "150x75"), ("w:300/dpr:0.5/ex:1", "150x50"),
        ("rot:90/w:50", "50x100"), ("rot:180", "200x100"), ("", "200x100"), ("s:60:60", "60x30"),
        ("rt:fill/w:30/h:90", "30x90"), ("resize:fill:33:44/padding:1:2:3:4", "39x48"),
    ]

    @Test func `a result has the size that imgproxy gives it`() async throws {
        let responses = ["/a": FaultyResponse.image(try ServerImages.encoded(.png))]
        let change: (inout ImageServer.Configuration) -> Void = { $0.addresses.allowsSecurityOptions = true }
        try await ServerFixture.run(responses, change: change) { fixture in
            for (options, size) in Self.sizes {
                let response = try await fixture.image(options)
                #expect(response.status == 200, "\(options): \(response.text.prefix(200))")
                guard response.status == 200 else { continue }
                #expect(try response.size() == size, "\(options)")
                #expect(
                    "\(response["X-Result-Width"] ?? "")x\(response["X-Result-Height"] ?? "")" == size,
                    "\(options)"
                )
            }
            #expect(fixture.origin.requestCount(for: "/a") == 1)
        }
    }

    @Test(arguments: [
        ("c:50:50:soea:10:20", 140, 30), ("c:50:50:nowe:0.1:0.1", 20, 10), ("c:50:50:fp:1:0", 150, 0),
        ("c:50:50:fp:0:1", 0, 50), ("c:50:50:ce", 76, 26), ("c:50:50:no", 76, 0), ("c:50:50:we", 0, 26),
        ("c:50:50:ea", 150, 26), ("c:50:50:so", 76, 50), ("c:50:50/g:noea", 150, 0),
        ("rs:fill:50:50/g:we:5/dpr:2", 10, 0), ("rs:fill:100:100/g:ea", 100, 0), ("rs:fill:100:100/g:fp:0:0", 0, 0),
    ])
    func `a part is cut out at the place that imgproxy gives it`(options: String, column: Int, row: Int) async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png))]) { fixture in
            let image = try (try await fixture.image(options)).decoded()
            #expect((image.pixels.sample(0, 0, 0), image.pixels.sample(0, 0, 1)) == (column, row))
        }
    }

    @Test(arguments: [
        ("rot:90", 0, 99), ("rot:180", 199, 99), ("rot:270", 199, 0), ("fl:1", 199, 0), ("fl:0:1", 0, 99),
        ("fl:1:1", 199, 99), ("rot:-90", 199, 0), ("rot:360", 0, 0),
    ])
    func `an image is turned and flipped`(options: String, column: Int, row: Int) async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.encoded(.png))]) { fixture in
            let image = try (try await fixture.image(options)).decoded()
            #expect((image.pixels.sample(0, 0, 0), image.pixels.sample(0, 0, 1)) == (column, row))
        }
    }

    @Test(arguments: 1...8)
    func `images of all orientations come upright, without their tag`(orientation: Int) async throws {
        try await ServerFixture.run(["/a": .image(try ServerImages.jpeg(orientation: orientation))]) { fixture in
            let header = try (try await fixture.image("")).decoder().header
            let isTurned = orientation > 4
            #expect((header.pixelWidth, header.pixelHeight) == (isTurned ? (100, 200) : (200, 100)))
            #expect(header.orientation == .up)
            #expect(try (try await fixture.image("rs:fit:50:50")).size() == (isTurned ? "25x50" : "50x25"))
        }
    }

    @Test func `a border is trimmed, and a background and a padding are added`() async throws {
        let pixels = try PixelBuffer.make(.rgb8, width: 60, height: 40) { column, row, channel in
            10..<50 ~= column && 10..<30 ~= row ? UInt8(channel * 100) : 255
        }
        let png = try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions())
        try await ServerFixture.run(["/a": .image(Array(png))]) { fixture in
            #expect(try (try await fixture.image("t:10")).size() == "40x20")
            let padded = try (try await fixture.image("t:10/pd:5/bg:ff0080")).decoded()
            #expect((padded.width, padded.height) == (50, 30))
            #expect((0..<3).map { padded.pixels.sample(0, 0, $0) } == [255, 0, 128])
            #expect(try (try await fixture.image("t:10/pd:5")).decoded().hasAlpha)
        }
    }

    @Test func `blurred, sharpened and pixelated images differ from each other`() async throws {
        try await ServerFixture.run(["/a": .image(Array(try Fixtures.data("camera.png")))]) { fixture in
            var bodies: Set<[UInt8]> = []
            let all = ["w:40", "w:40/bl:2", "w:40/bl:4", "w:40/sh:2", "w:40/pix:4", "w:40/pix:8"]
            for options in all { bodies.insert(try await fixture.image(options).body) }
            #expect(bodies.count == all.count)
        }
    }

    @Test func `a watermark is drawn where the options say`() async throws {
        let folder = try TemporaryDirectory()
        let black = try PixelBuffer.make(.rgb8, width: 20, height: 20) { _, _, _ in 0 }
        let white = try PixelBuffer.make(.rgb8, width: 200, height: 100) { _, _, _ in 255 }
        let png = try PNGCoder().encode(Image(pixels: black), as: .png, options: EncodeOptions())
        try folder.write(png, to: "mark.png")
        let source = Array(try PNGCoder().encode(Image(pixels: white), as: .png, options: EncodeOptions()))
        let change: (inout ImageServer.Configuration) -> Void = { $0.images.watermark = folder.url(of: "mark.png") }
        try await ServerFixture.run(["/a": .image(source)], change: change) { fixture in
            let marked = try (try await fixture.image("wm:1:nowe")).decoded()
            #expect((marked.pixels.sample(2, 2), marked.pixels.sample(100, 50)) == (0, 255))
            let half = try (try await fixture.image("wm:0.5:ce")).decoded()
            #expect(half.pixels.sample(2, 2) == 255)
            #expect(120...135 ~= half.pixels.sample(100, 50))
            let tiled = try (try await fixture.image("wm:1:re")).decoded()
            #expect((tiled.pixels.sample(2, 2), tiled.pixels.sample(100, 50)) == (0, 0))
        }
    }
}
