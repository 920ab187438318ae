// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

/// Transforms that depend on the size of the image, in pipelines.
@Suite struct SizedTransformerTests {
    /// Replaces itself by the transforms that a function names.
    private struct Sized: SizedTransformer {
        let key: String
        let make: @Sendable (PixelSize) -> TransformPipeline

        init(_ key: String, _ make: @escaping @Sendable (PixelSize) -> TransformPipeline) {
            self.key = key
            self.make = make
        }

        func transforms(for size: PixelSize) throws(TransformError) -> TransformPipeline { self.make(size) }
    }

    /// A pipeline with sized transforms, and the same pipeline written out for an image of 48 by 36 pixels.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let sized: TransformPipeline
        let written: TransformPipeline

        init(_ name: String, _ sized: TransformPipeline, _ written: TransformPipeline) {
            self.testDescription = name
            self.sized = sized
            self.written = written
        }
    }

    /// Cuts out the middle half.
    private static let half = Sized("half") { size in
        [.crop(.rectangle(x: size.width / 4, y: size.height / 4, width: size.width / 2, height: size.height / 2))]
    }
    /// Cuts out the middle half, shrinks it to a third, and mirrors it.
    private static let card = Sized("card") { size in
        [.custom(Self.half), .resize(.stretch(width: size.width / 6, height: size.height / 6)), .flip(.horizontal)]
    }
    private static let nothing = Sized("nothing") { _ in [] }
    /// Adjusts colours as the size says.
    private static let colors = Sized("colors") { size in
        [.adjust(.brightness(Double(size.width) / 40)), .adjust(.gamma(Double(size.height) / 30))]
    }

    static let cases = [
        Case("nothing", [.custom(Self.nothing)], []),
        Case(
            "a crop",
            [.custom(Self.half)],
            [.crop(.rectangle(x: 12, y: 9, width: 24, height: 18))]
        ),
        Case(
            "sized transforms in sized transforms",
            [.custom(Self.card)],
            [
                .crop(.rectangle(x: 12, y: 9, width: 24, height: 18)), .resize(.stretch(width: 8, height: 6)),
                .flip(.horizontal),
            ]
        ),
        Case(
            "after a turn",
            [.rotate(degrees: 90), .custom(Self.half), .custom(Self.nothing), .flip(.vertical)],
            [.rotate(degrees: 90), .crop(.rectangle(x: 9, y: 12, width: 18, height: 24)), .flip(.vertical)]
        ),
        Case(
            "after a resize",
            [.resize(.stretch(width: 24, height: 20)), .custom(Self.half), .custom(Self.card)],
            [
                .resize(.stretch(width: 24, height: 20)), .crop(.rectangle(x: 6, y: 5, width: 12, height: 10)),
                .crop(.rectangle(x: 3, y: 2, width: 6, height: 5)), .resize(.stretch(width: 2, height: 1)),
                .flip(.horizontal),
            ]
        ),
        Case(
            "after a blur, before a pad",
            [.blur(.box(radius: 2)), .custom(Self.card), .pad(.sides(top: 2, color: .black))],
            [
                .blur(.box(radius: 2)), .crop(.rectangle(x: 12, y: 9, width: 24, height: 18)),
                .resize(.stretch(width: 8, height: 6)), .flip(.horizontal), .pad(.sides(top: 2, color: .black)),
            ]
        ),
        Case(
            "among operations on pixels",
            [.adjust(.grayscale), .custom(Self.colors), .custom(Self.nothing), .tint(.white, mode: .multiply)],
            [
                .adjust(.grayscale), .adjust(.brightness(48.0 / 40)), .adjust(.gamma(36.0 / 30)),
                .tint(.white, mode: .multiply),
            ]
        ),
        Case(
            "in a pipeline in a pipeline",
            [.custom(TransformPipeline([.flip(.both), .custom(Self.half)])), .custom(Self.half)],
            [
                .flip(.both), .crop(.rectangle(x: 12, y: 9, width: 24, height: 18)),
                .crop(.rectangle(x: 6, y: 4, width: 12, height: 9)),
            ]
        ),
    ]

    @Test(arguments: Self.cases, [PixelFormat.rgb8, .rgba8])
    func `a sized transform gives the pixels of its transforms written out`(
        sample: Case,
        format: PixelFormat
    ) throws {
        let image = Image(pixels: try .smooth(format, width: 48, height: 36))
        let (result, expected) = (try sample.sized.transform(image), try sample.written.transform(image))
        #expect(result.pixels.layout == expected.pixels.layout)
        #expect(result.pixels.samples == expected.pixels.samples)
        let layout = image.pixels.layout
        #expect(try sample.sized.footprint(for: layout) == sample.written.footprint(for: layout))
        for orientation in Orientation.allCases {
            let stored = Image(pixels: image.pixels, orientation: orientation)
            let turned = try sample.sized.transform(stored.upright())
            #expect(try sample.sized.transform(stored).pixels.samples == turned.pixels.samples)
        }
    }

    @Test(arguments: Self.cases) func `the geometry at the start is that of the transforms written out`(
        sample: Case
    ) throws {
        let size = PixelSize(width: 48, height: 36)
        let (plan, expected) = (try TransformPlan(sample.sized, of: size), try TransformPlan(sample.written, of: size))
        #expect(plan.geometry == expected.geometry)
        let layout = try PixelLayout(format: .rgb8, width: 48, height: 36)
        #expect(try Self.steps(of: plan, layout) == Self.steps(of: expected, layout))
    }

    /// Returns the numbers of transformers in the steps of the rest.
    private static func steps(of plan: TransformPlan, _ layout: PixelLayout) throws -> [Int] {
        var counts: [Int] = []
        var total = TransformFootprint(result: layout)
        try plan.rest.add(to: &total, isFirst: false) { _, count in counts.append(count) }
        return counts
    }

    @Test func `a sized transform alone is the pipeline of its transforms`() throws {
        let image = Image(pixels: try .smooth(.rgb8, width: 48, height: 36), orientation: .right)
        let expected = try TransformPipeline([.custom(Self.card)]).transform(image)
        #expect(try Self.card.transform(image).pixels.samples == expected.pixels.samples)
        let layout = try image.upright().pixels.layout
        #expect(try Self.card.footprint(for: layout).result == expected.pixels.layout)
        #expect(ImageTransform.custom(Self.card).key == "own(card)")
    }

    @Test func `an invalid parameter of its transforms is an error before any transform runs`() throws {
        let image = Image(pixels: try .smooth(.rgb8, width: 48, height: 36))
        let broken = Sized("broken") { size in [.resize(.width(size.width - 48))] }
        for pipeline in [[.custom(broken)], [.blur(.box(radius: 1)), .custom(broken)]] as [TransformPipeline] {
            #expect(throws: TransformError.self) { try pipeline.transform(image) }
        }
    }

    /// The beginnings that two sequences after the same blur may share, which depend on what may join the next step.
    @Test(
        arguments: [
            ([.custom(Self.half), .pad(.sides(top: 1, color: .black))], [.custom(Self.half)], 2),
            ([.custom(Self.half), .flip(.both)], [.custom(Self.half)], 1),
            ([.custom(Self.half), .custom(Self.colors)], [.custom(Self.half)], 1),
            ([.custom(Self.colors), .adjust(.grayscale)], [.custom(Self.colors)], 1),
            ([.custom(Self.half)], [.custom(Self.colors)], 1),
            ([.flip(.both), .custom(Self.half)], [.flip(.both)], 1),
        ] as [([ImageTransform], [ImageTransform], Int)]
    )
    func `pipelines share a beginning only if its last step is the same in both`(
        one: [ImageTransform],
        other: [ImageTransform],
        count: Int
    ) throws {
        let size = PixelSize(width: 48, height: 36)
        let plans = try [one, other].map { transforms in
            try TransformPlan(TransformPipeline([.blur(.box(radius: 1))] + transforms), of: size)
        }
        #expect(plans[0].rest.commonCount(with: plans[1].rest) == count)
        #expect(plans[1].rest.commonCount(with: plans[0].rest) == count)
    }
}
