// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

/// The results, memory and coding of pipelines.
@Suite struct TransformPipelineTests {
    static let pipelines: [TransformPipeline] = [
        [],
        [.resize(.fit(width: 20, height: 20))],
        [
            .crop(.rectangle(x: 3, y: 4, width: 30, height: 20)), .resize(.fill(width: 10, height: 12)),
            .rotate(degrees: 90),
        ],
        [.flip(.horizontal), .crop(.aspectRatio(1, gravity: .east)), .flip(.both), .resize(.width(9))],
        [
            .resize(.fit(width: 30, height: 30)), .adjust(.brightness(1.2)), .adjust(.grayscale),
            .tint(.white, mode: .multiply),
        ],
        [.blur(.gaussian(sigma: 2)), .resize(.scaled(by: 0.5)), .resize(.scaled(by: 0.5))],
        [
            .pad(.sides(left: 4, top: 1, right: 2, bottom: 3, color: .black)), .trim(Trim()),
            .roundCorners(RoundCorners(radius: 4)),
        ],
        [
            .rotate(degrees: 17), .flatten(Color(red: 1, green: 2, blue: 3)),
            .circle(border: Border(width: 2, color: .black)),
        ],
        [.rotate(degrees: 270, canvas: .clip), .adjust(.hue(degrees: 40)), .adjust(.gamma(2)), .blur(.box(radius: 3))],
    ]

    /// Performs the transforms one by one, each on a complete image.
    private static func oneByOne(_ pipeline: TransformPipeline, _ image: Image) throws -> Image {
        try pipeline.transforms.reduce(image) { try $1.transformer.transform($0) }
    }

    @Test(arguments: Self.pipelines, [PixelFormat.gray8, .rgb8, .rgba8])
    func `what is carried out together is what comes of one transform after the other`(
        pipeline: TransformPipeline,
        format: PixelFormat
    ) throws {
        let image = Image(pixels: try .smooth(format, width: 48, height: 36))
        let expected = try Self.oneByOne(pipeline, image)
        let result = try pipeline.transform(image)
        #expect((result.width, result.height) == (expected.width, expected.height))
        // Only the rounding between the steps may differ.
        guard result.pixels.format == expected.pixels.format else { return }
        #expect(result.pixels.largestDifference { expected.pixels.sample($0, $1, $2) } <= 3)
        if pipeline.isEmpty { #expect(result.pixels === image.pixels) }
    }

    @Test(arguments: Self.pipelines, Orientation.allCases)
    func `an image that is still to be turned is turned first`(
        pipeline: TransformPipeline,
        orientation: Orientation
    ) throws {
        let image = Image(pixels: try .smooth(.rgb8, width: 48, height: 36), orientation: orientation)
        let expected = try pipeline.transform(image.upright())
        let result = try pipeline.transform(image)
        #expect(result.orientation == .up)
        #expect((result.width, result.height) == (expected.width, expected.height))
        #expect(result.pixels.samples == expected.pixels.samples)
    }

    @Test(arguments: Self.pipelines, [PixelFormat.gray8, .rgb8, .rgba8])
    func `its footprint says the size that comes of it`(pipeline: TransformPipeline, format: PixelFormat) throws {
        let image = Image(pixels: try .smooth(format, width: 48, height: 36))
        let result = try pipeline.transform(image).pixels.layout
        let footprint = try pipeline.footprint(for: image.pixels.layout)
        #expect(footprint.result.width >= result.width && footprint.result.height >= result.height)
        #expect(footprint.result.byteCount >= result.byteCount)
        #expect(footprint.workingByteCount >= 0)
    }

    @Test(arguments: Self.pipelines) func `is the same after it was written down and read`(
        pipeline: TransformPipeline
    ) throws {
        let text = try JSONEncoder().encode(pipeline)
        let read = try JSONDecoder().decode(TransformPipeline.self, from: text)
        #expect(read == pipeline)
        #expect(read.key == pipeline.key)
    }

    @Test func `a description may leave out what has a default`() throws {
        let text = """
            [{"crop": {"rectangle": {"x": 1, "y": 2, "width": 30, "height": 20}}}, {"resize": {"width": 10}},
             {"flip": {"direction": "both"}}, {"adjust": {"brightness": 1.5}}]
            """
        let read = try JSONDecoder().decode(TransformPipeline.self, from: Data(text.utf8))
        let expected: TransformPipeline = [
            .crop(.rectangle(x: 1, y: 2, width: 30, height: 20)), .resize(.width(10)), .flip(.both),
            .adjust(.brightness(1.5)),
        ]
        #expect(read == expected)
    }

    @Test(arguments: [
        #"{"resize": {"width": 9, "enlarge": true}}"#, #"{"crop": {"size": {"width": 3, "height": 3, "at": "north"}}}"#,
        #"{"pad": {"sides": {"up": 3}}}"#, #"{"blur": {"sigma": 1, "amount": 2}}"#,
        ##"{"tint": {"color": "#fff", "x": 1}}"##,
        #"{"roundCorners": {"radius": {"top": 3}}}"#, #"{"trim": {"fuzz": 3}}"#,
        #"{"rotate": {"degrees": 3, "by": 1}}"#,
    ])
    func `a parameter that there is not is refused by its name`(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(TransformPipeline.self, from: Data("[\(text)]".utf8))
        }
    }

    @Test func `the description in the docs is one`() throws {
        let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        let docs = try String(contentsOf: root.appending(path: "Docs/transforms.md"), encoding: .utf8)
        let sample = try #require(docs.split(separator: "```json\n").last?.split(separator: "```").first)
        let pipeline = try JSONDecoder().decode(TransformPipeline.self, from: Data(sample.utf8))
        #expect(pipeline.transforms.count == 4)
    }

    @Test(arguments: [
        #"{}"#, #"[{}]"#, #"[{"blurr": {}}]"#, #"[{"resize": {}}]"#, #"[{"resize": {"width": 3}, "flip": {}}]"#,
        #"[3]"#,
        #"[{"flip": {"direction": "up"}}]"#, #"[{"tint": {"color": "blue"}}]"#, #"[["resize"]]"#,
    ])
    func `a description that makes no sense is refused`(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(TransformPipeline.self, from: Data(text.utf8))
        }
    }

    /// A custom transformer that can be encoded.
    private struct Threshold: ImageTransformer, Codable {
        var level: Int

        var key: String { "threshold(\(self.level))" }

        func transform(_ image: Image) throws -> Image {
            let pixels = image.pixels
            return image.replacingPixels(
                try .make(pixels.format, width: image.width, height: image.height) {
                    pixels.sample($0, $1, $2) < self.level ? 0 : 255
                },
                orientation: .up
            )
        }
    }

    @Test func `a program's own transformers have names where they are given`() throws {
        let pipeline: TransformPipeline = [.custom(Threshold(level: 3)), .flip(.both)]
        let kinds: TransformPipeline.OwnKinds = ["threshold": Threshold.self]
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(pipeline) }
        let encoder = JSONEncoder()
        encoder.userInfo[.tintypeTransformers] = kinds
        let text = try encoder.encode(pipeline)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(TransformPipeline.self, from: text) }
        let decoder = JSONDecoder()
        decoder.userInfo[.tintypeTransformers] = kinds
        #expect(try decoder.decode(TransformPipeline.self, from: text) == pipeline)
    }

    @Test func `a program's own transformer is not written down under a name of the library's`() throws {
        let pipeline: TransformPipeline = [.custom(Threshold(level: 3))]
        let encoder = JSONEncoder()
        encoder.userInfo[.tintypeTransformers] = ["blur": Threshold.self] as TransformPipeline.OwnKinds
        #expect(throws: EncodingError.self) { try encoder.encode(pipeline) }
        encoder.userInfo[.tintypeTransformers] =
            ["blur": Threshold.self, "threshold": Threshold.self, "a": Threshold.self] as TransformPipeline.OwnKinds
        #expect(String(decoding: try encoder.encode(pipeline), as: UTF8.self) == #"[{"a":{"level":3}}]"#)
    }

    @Test func `what a program's own transformer leaves to be turned is turned before the next`() throws {
        struct Note: ImageTransformer {
            let key = "note"
            func transform(_ image: Image) throws -> Image { image.replacingPixels(image.pixels, orientation: .right) }
        }
        let image = Image(pixels: try .smooth(.rgb8, width: 48, height: 36))
        let rest = ImageTransform.overlay(Overlay(image, placement: .single(.northWest, offsetX: 20)))
        let result = try TransformPipeline([.custom(Note()), rest]).transform(image)
        let expected = try TransformPipeline([.rotate(degrees: 90), rest]).transform(image)
        #expect(result.orientation == .up)
        #expect((result.width, result.height) == (36, 48))
        #expect(result.pixels.samples == expected.pixels.samples)
    }

    @Test func `keys tell pipelines apart by order and by every parameter`() {
        let keys = Self.pipelines.map(\.key)
        #expect(Set(keys).count == keys.count)
        let blur: TransformPipeline = [.blur(.gaussian(sigma: 2)), .flip(.both)]
        let flip: TransformPipeline = [.flip(.both), .blur(.gaussian(sigma: 2))]
        #expect(blur != flip)
    }

    @Test func `crops, a resize and turns are one step, and operations on single pixels one pass`() throws {
        let layout = try PixelLayout(format: .rgb8, width: 4_000, height: 3_000)
        func working(_ pipeline: TransformPipeline) throws -> Int {
            try pipeline.footprint(for: layout).workingByteCount
        }
        // The pipeline creates no intermediate image of the full size.
        let fused = try working([
            .crop(.rectangle(x: 10, y: 10, width: 3_900, height: 2_900)), .flip(.horizontal),
            .resize(.fit(width: 100, height: 100)), .rotate(degrees: 90),
        ])
        #expect(fused < layout.byteCount / 4)
        let points = try working([.adjust(.brightness(1.2)), .adjust(.contrast(1.1)), .adjust(.saturation(0.5))])
        #expect(points < layout.byteCount / 4)
    }
}
