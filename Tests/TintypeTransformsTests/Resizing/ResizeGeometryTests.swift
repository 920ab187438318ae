// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

/// A source, a resize, and the expected size.
struct GeometryCase: Sendable, CustomTestStringConvertible {
    let source: (width: Int, height: Int)
    let resize: Resize
    let result: (width: Int, height: Int)

    init(_ width: Int, _ height: Int, _ resize: Resize, is resultWidth: Int, _ resultHeight: Int) {
        self.source = (width, height)
        self.resize = resize
        self.result = (resultWidth, resultHeight)
    }

    var testDescription: String {
        "\(self.source.width)x\(self.source.height) \(self.resize.key)"
    }
}

@Suite(.computing) struct ResizeGeometryTests {
    static let sizes: [GeometryCase] = [
        GeometryCase(5_250, 3_450, .fit(width: 400, height: 300), is: 400, 263),
        GeometryCase(200, 100, .fit(width: 50, height: 50), is: 50, 25),
        GeometryCase(200, 100, .fit(width: 50, height: 20), is: 40, 20),
        GeometryCase(200, 100, .fit(width: 20, height: 50), is: 20, 10),
        GeometryCase(200, 100, .fit(width: 300, height: 300), is: 200, 100),
        GeometryCase(200, 100, .fit(width: 300, height: 300, upscales: true), is: 300, 150),
        GeometryCase(200, 100, .fit(width: 200, height: 100), is: 200, 100),
        GeometryCase(100, 200, .fit(width: 150, height: 150), is: 75, 150),
        GeometryCase(100, 200, .fit(width: 300, height: 300), is: 100, 200),
        GeometryCase(100, 200, .fit(width: 300, height: 300, upscales: true), is: 150, 300),
        GeometryCase(640, 480, .fit(width: 480, height: 480), is: 480, 360),
        GeometryCase(640, 480, .fit(width: 1_280, height: 1_280), is: 640, 480),
        GeometryCase(640, 480, .fit(width: 1_280, height: 1_280, upscales: true), is: 1_280, 960),
        GeometryCase(10_000, 1, .fit(width: 100, height: 100), is: 100, 1),
        GeometryCase(1, 10_000, .fit(width: 100, height: 100), is: 1, 100),
        GeometryCase(1, 1, .fit(width: 1, height: 1), is: 1, 1),
        GeometryCase(200, 100, .fill(width: 300, height: 300), is: 100, 100),
        GeometryCase(200, 100, .fill(width: 300, height: 125), is: 200, 83),
        GeometryCase(200, 100, .fill(width: 250, height: 300), is: 83, 100),
        GeometryCase(200, 100, .fill(width: 50, height: 50), is: 50, 50),
        GeometryCase(200, 100, .fill(width: 150, height: 50), is: 150, 50),
        GeometryCase(200, 100, .fill(width: 300, height: 300, upscales: true), is: 300, 300),
        GeometryCase(640, 480, .fill(width: 400, height: 400), is: 400, 400),
        GeometryCase(640, 480, Resize(width: 400, height: 400, mode: .cover), is: 533, 400),
        GeometryCase(640, 480, Resize(width: 960, height: 100, mode: .cover), is: 640, 480),
        GeometryCase(640, 480, Resize(width: 960, height: 100, mode: .cover, upscales: true), is: 960, 720),
        GeometryCase(640, 480, .fill(width: 960, height: 960), is: 480, 480),
        GeometryCase(640, 480, .fill(width: 640, height: 480), is: 640, 480),
        GeometryCase(300, 300, .fill(width: 200, height: 100), is: 200, 100),
        GeometryCase(100, 200, .stretch(width: 150, height: 150), is: 100, 150),
        GeometryCase(100, 200, .stretch(width: 150, height: 150, upscales: true), is: 150, 150),
        GeometryCase(100, 200, .stretch(width: 10, height: 10), is: 10, 10),
        GeometryCase(100, 200, .stretch(width: 500, height: 500), is: 100, 200),
        GeometryCase(100, 200, .stretch(width: 1, height: 1), is: 1, 1),
        GeometryCase(200, 100, .fillDown(width: 50, height: 50), is: 50, 50),
        GeometryCase(200, 100, .fillDown(width: 300, height: 300), is: 100, 100),
        GeometryCase(200, 100, Resize(width: 300, height: 300, mode: .fillDown, upscales: true), is: 100, 100),
        GeometryCase(200, 100, .width(50), is: 50, 25),
        GeometryCase(200, 100, .width(800), is: 200, 100),
        GeometryCase(200, 100, .width(800, upscales: true), is: 800, 400),
        GeometryCase(10_000, 3, .width(100), is: 100, 1),
        GeometryCase(200, 100, .height(75), is: 150, 75),
        GeometryCase(200, 100, .height(101), is: 200, 100),
        GeometryCase(200, 100, .height(300, upscales: true), is: 600, 300),
        GeometryCase(201, 100, .scaled(by: 0.5), is: 101, 50),
        GeometryCase(200, 100, .scaled(by: 1), is: 200, 100),
        GeometryCase(200, 100, .scaled(by: 0.001), is: 1, 1),
        GeometryCase(200, 100, .scaled(by: 1.5), is: 300, 150),
        GeometryCase(200, 100, Resize(.scale(1.5)), is: 200, 100),
    ]

    static let gravities: [(gravity: Gravity, left: Double, top: Double)] = [
        (.center, 50, 0), (.west, 0, 0), (.east, 100, 0), (.northWest, 0, 0), (.focus(x: 0.3, y: 0.9), 10, 0),
        (.focus(x: 0.1, y: 0), 0, 0),
    ]

    @Test(arguments: Self.gravities, [Resize.Mode.fill, .fillDown])
    func `gravity says which part is kept`(
        _ kept: (gravity: Gravity, left: Double, top: Double),
        mode: Resize.Mode
    ) throws {
        let resize = Resize(width: 20, height: 20, mode: mode, gravity: kept.gravity)
        let geometry = try ResizeGeometry(resize, width: 200, height: 100)
        #expect((geometry.left, geometry.top) == (kept.left, kept.top))
        #expect((geometry.sourceWidth, geometry.sourceHeight) == (100, 100))
        let upright = try ResizeGeometry(resize, width: 100, height: 200)
        #expect((upright.left, upright.top) == (0, min(max(kept.gravity.y * 200 - 50, 0), 100)))
    }

    @Test(arguments: Orientation.allCases) func `a turned image keeps the part that it shows`(
        orientation: Orientation
    ) throws {
        // Each pixel of the upright image has its own value, and the stored image is turned back.
        let upright = Image(
            pixels: try .make(.gray8, width: 12, height: 8) { column, row, _ in UInt8(column + 12 * row) }
        )
        let back: [Orientation: Orientation] = [.left: .right, .right: .left]
        let turned = upright.replacingPixels(upright.pixels, orientation: back[orientation] ?? orientation)
        let stored = upright.replacingPixels(try turned.upright().pixels, orientation: orientation)
        #expect(try stored.upright().pixels.samples == upright.pixels.samples)

        let resize = Resize(width: 5, height: 5, mode: .fill, gravity: .focus(x: 0.6, y: 0.2))
        let expected = try upright.resized(resize).pixels
        var geometry = TransformGeometry(of: PixelSize(width: 12, height: 8))
        #expect(try geometry.resize(resize))
        let result = try geometry.beforeTurn(orientation).transform(
            upright.replacingPixels(stored.pixels, orientation: .up)
        ).pixels
        #expect(result.largestDifference { column, row, _ in expected.sample(column, row) } <= 1)
    }

    @Test(arguments: [
        (Resize.width(0), TransformError.Code.invalidSize), (.height(-3), .invalidSize), (.width(.max), .invalidSize),
        (.scaled(by: 0), .invalidParameter), (.scaled(by: -1), .invalidParameter),
        (.scaled(by: .nan), .invalidParameter),
        (.scaled(by: .infinity), .invalidParameter), (.scaled(by: 1e300), .invalidSize),
        (.height(Int(Int32.max), upscales: true), .invalidSize),
        (.fill(width: Int(Int32.max) + 1, height: 1), .invalidSize),
    ])
    func `what makes no sense is refused`(resize: Resize, code: TransformError.Code) throws {
        let image = Image(pixels: try .noise(.gray8, width: 20, height: 10))
        for attempt in [{ _ = try image.resized(resize) }, { _ = try resize.footprint(for: image.pixels.layout) }] {
            let error = #expect(throws: TransformError.self) { try attempt() }
            #expect(error?.code == code)
        }
    }

    @Test(arguments: Self.sizes) func `gives the size`(of geometry: GeometryCase) throws {
        let result = try ResizeGeometry(
            geometry.resize,
            width: geometry.source.width,
            height: geometry.source.height
        )
        #expect((result.width, result.height) == geometry.result)
    }

    @Test(arguments: Self.sizes) func `reads within the source`(of geometry: GeometryCase) throws {
        let (width, height) = geometry.source
        let result = try ResizeGeometry(geometry.resize, width: width, height: height)
        #expect(result.left >= 0)
        #expect(result.top >= 0)
        #expect(result.left + result.sourceWidth <= Double(width) + 1e-9)
        #expect(result.top + result.sourceHeight <= Double(height) + 1e-9)
        // By default, a resize cuts off the same amount on both sides.
        #expect(abs(2 * result.left + result.sourceWidth - Double(width)) < 1e-9)
        #expect(abs(2 * result.top + result.sourceHeight - Double(height)) < 1e-9)
    }

    @Test(arguments: [Resize.Mode.fit, .stretch]) func `only fill cuts`(mode: Resize.Mode) throws {
        let geometry = try ResizeGeometry(Resize(width: 33, height: 77, mode: mode), width: 200, height: 100)
        #expect(geometry.left == 0)
        #expect(geometry.top == 0)
        #expect(geometry.sourceWidth == 200)
        #expect(geometry.sourceHeight == 100)
    }

    @Test func `fill cuts the sides that stand over`() throws {
        let geometry = try ResizeGeometry(.fill(width: 400, height: 400), width: 640, height: 480)
        #expect(geometry.left == 80)
        #expect(geometry.top == 0)
        #expect(geometry.sourceWidth == 480)
        #expect(geometry.sourceHeight == 480)
    }

    @Test(arguments: Resize.Mode.allCases, [(0, 5), (5, 0), (-1, 5), (5, Int.min), (0, 0)])
    func `a box without area is refused`(mode: Resize.Mode, box: (width: Int, height: Int)) {
        let error = #expect(throws: TransformError.self) {
            try ResizeGeometry(Resize(width: box.width, height: box.height, mode: mode), width: 10, height: 10)
        }
        #expect(error?.code == .invalidSize)
        #expect(error?.message.contains("\(box.width)x\(box.height)") == true)
    }

    @Test func `scaling moves the part and keeps the size`() throws {
        let geometry = try ResizeGeometry(.fill(width: 400, height: 400), width: 640, height: 480)
            .scaled(byWidth: 0.25, height: 0.5)
        #expect(geometry.left == 20)
        #expect(geometry.sourceWidth == 120)
        #expect(geometry.sourceHeight == 240)
        #expect((geometry.width, geometry.height) == (400, 400))
    }

    private static let boxes: [Resize.Size] = [
        .box(width: 1, height: 2), .box(width: 2, height: 1), .box(width: 12, height: 1), .width(12), .height(12),
        .scale(0.5), .scale(12),
    ]

    /// Every combination of a few values for each parameter.
    private static var everyResize: [Resize] {
        var all: [Resize] = []
        for size in Self.boxes {
            for mode in Resize.Mode.allCases {
                for filter in Resize.Filter.allCases {
                    for gravity in [Gravity.center, .north, .focus(x: 0.25, y: 0.5)] {
                        for (upscales, light) in [(false, LightSpace.sRGB), (true, .sRGB), (true, .linear)] {
                            let resize = Resize(
                                size,
                                mode: mode,
                                upscales: upscales,
                                filter: filter,
                                gravity: gravity,
                                light: light
                            )
                            all.append(resize)
                        }
                    }
                }
            }
        }
        return all
    }

    @Test func `keys differ for every parameter`() {
        let all = Self.everyResize
        #expect(Set(all.map(\.key)).count == all.count)
    }

    @Test(arguments: [
        (Resize.fit(width: 400, height: 300), "resize(400x300,fit,lanczos3)"),
        (Resize(width: 1, height: 2, mode: .fill, upscales: true, filter: .bicubic), "resize(1x2,fill,bicubic,up)"),
        (.fill(width: 8, height: 9, gravity: .north), "resize(8x9,fill,lanczos3,gravity=north)"),
        (.width(800), "resize(800x,fit,lanczos3)"), (.height(600), "resize(x600,fit,lanczos3)"),
        (Resize(.scale(0.5), light: .linear), "resize(0.5,fit,lanczos3,light=linear)"),
    ])
    func `keys are stored`(resize: Resize, key: String) {
        // Keys are names of cache files, which outlive the program.
        #expect(resize.key == key)
    }

    @Test func `descriptions are read as they were written`() throws {
        let every = Self.everyResize
        let all = stride(from: 0, to: every.count, by: 13).map { every[$0] }
        #expect(try JSONDecoder().decode([Resize].self, from: JSONEncoder().encode(all)) == all)
    }

    @Test(arguments: [
        (#"{"width": 800}"#, Resize.width(800)), (#"{"height": 600}"#, .height(600)),
        (
            #"{"width": 8, "height": 6, "mode": "fill", "gravity": "north"}"#,
            .fill(width: 8, height: 6, gravity: .north)
        ),
        (#"{"scale": 0.5, "light": "linear"}"#, Resize(.scale(0.5), light: .linear)),
        (#"{"scale": 2}"#, .scaled(by: 2)), (#"{"scale": 2, "upscales": false}"#, Resize(.scale(2))),
    ])
    func `what a description leaves out has its default`(text: String, resize: Resize) throws {
        #expect(try JSONDecoder().decode(Resize.self, from: Data(text.utf8)) == resize)
    }

    @Test(arguments: [
        "{}", #"{"width": 8, "scale": 0.5}"#, #"{"width": "8"}"#, #"{"width": 8, "mode": "contain"}"#,
        #"{"width": 8, "filter": "gauss"}"#, #"{"width": 8, "gravity": "up"}"#,
    ])
    func `a description that makes no sense is refused`(text: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Resize.self, from: Data(text.utf8)) }
    }
}
