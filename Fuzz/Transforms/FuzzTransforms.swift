// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeFuzzSupport
import TintypeImage
import TintypeTransforms

/// Runs a random pipeline on a small image.
///
/// The bytes determine the image, the operations and their parameters.
///
/// Each transform must throw, or produce an image within its declared footprint.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let data = start.map { Data(bytes: $0, count: count) } ?? Data()
    if data.first == UInt8(ascii: "[") {
        // A description, as a file may hold it.
        guard let pipeline = try? JSONDecoder().decode(TransformPipeline.self, from: data) else { return 0 }
        var bytes = RandomBytes(data)
        guard let image = try? bytes.image() else { return 0 }
        run(pipeline, on: image)
        return 0
    }
    var bytes = RandomBytes(data)
    guard let image = try? bytes.image() else { return 0 }
    var transforms: [ImageTransform] = []
    for _ in 0..<(1 + bytes.byte() % 6) { transforms.append(bytes.transform(image)) }
    run(TransformPipeline(transforms), on: image)
    return 0
}

/// The pixels' bytes that are let in, as the limits of a decode would.
private let byteLimit = 32 << 20

private func run(_ pipeline: TransformPipeline, on image: Image) {
    precondition(!pipeline.key.contains("\n"), "a key has two lines")
    if let read = try? JSONDecoder().decode(TransformPipeline.self, from: JSONEncoder().encode(pipeline)) {
        precondition(read.key == pipeline.key, "a description is read as another")
    }
    // Run each transform separately: the result of one is the source of the next.
    var single: Image? = image
    for transform in pipeline.transforms {
        single = single.flatMap { result(of: transform.transformer, on: $0) }
    }
    // All transforms together may take as much memory as one by one, which the limits allowed.
    guard let single, let whole = try? pipeline.transform(image) else { return }
    precondition(single.width == whole.width && single.height == whole.height, "together it has another size")
    checksum(whole.pixels)
    // The result of trimming depends on the image's pixels.
    guard !pipeline.transforms.contains(where: { $0.transformer is Trim }) else { return }
    guard let footprint = try? pipeline.footprint(for: image.pixels.layout) else {
        preconditionFailure("it has no footprint")
    }
    precondition(whole.pixels.byteCount <= footprint.result.byteCount, "together it takes more than it said")
}

private func result(of transformer: any ImageTransformer, on image: Image) -> Image? {
    let layout = image.pixels.layout
    guard let footprint = try? transformer.footprint(for: layout) else {
        precondition((try? transformer.transform(image)) == nil, "what has no footprint is made all the same")
        return nil
    }
    precondition(footprint.workingByteCount >= 0, "it takes less than nothing")
    let (sum, overflows) = footprint.workingByteCount.addingReportingOverflow(footprint.result.byteCount)
    guard !overflows, sum <= byteLimit, let made = try? transformer.transform(image) else { return nil }
    precondition(
        made.width <= footprint.result.width && made.height <= footprint.result.height,
        "it is larger than it said"
    )
    precondition(made.pixels.byteCount <= footprint.result.byteCount, "it takes more than it said")
    checksum(made.pixels)
    return made
}

/// Numbers of all kinds from the fuzzer's bytes.
private struct RandomBytes {
    private var data: Data.SubSequence

    init(_ data: Data) {
        self.data = data[...]
    }

    mutating func byte() -> UInt8 { self.data.popFirst() ?? 0 }

    mutating func flag() -> Bool { self.byte() & 1 == 1 }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[Int(self.byte()) % values.count] }

    /// Returns a number, mostly small and sometimes at the limits of its range.
    mutating func whole() -> Int {
        switch self.byte() % 16 {
        case 0: self.pick([Int.min, Int.max, -1, 0, Int(Int32.max), Int(Int32.max) + 1, 1 << 20, Int(Int32.min)])
        case 1: Int(self.byte()) << 8
        case 2: -Int(self.byte())
        default: Int(self.byte() % 64)
        }
    }

    mutating func real() -> Double {
        switch self.byte() % 16 {
        case 0:
            self.pick([
                .nan, .infinity, -.infinity, 0, -0.0, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -1e300, 1e-300,
                1e18, -1,
            ])
        case 1: Double(self.whole())
        case 2: Double(self.byte()) * 16
        case 3: -Double(self.byte()) / 16
        case 4...9: Double(self.byte()) / 255
        default: Double(self.byte()) / 16
        }
    }

    mutating func color() -> Color {
        Color(red: self.byte(), green: self.byte(), blue: self.byte(), alpha: self.pick([255, 0, 128, self.byte()]))
    }

    mutating func gravity() -> Gravity {
        self.flag() ? .focus(x: self.real(), y: self.real()) : self.pick(Gravity.named.map(\.gravity))
    }

    mutating func light() -> LightSpace { self.pick(LightSpace.allCases) }

    mutating func image() throws -> Image {
        let format = self.pick([PixelFormat.gray8, .rgb8, .rgba8])
        let layout = try PixelLayout(
            format: format,
            width: 1 + Int(self.byte() % 48),
            height: 1 + Int(self.byte() % 48)
        )
        var state = UInt64(self.byte()) + 1
        let pixels = try PixelBuffer(
            layout,
            filling: { span in
                let plane = layout.planes[0]
                for row in 0..<plane.height {
                    for column in 0..<plane.usedBytesPerRow {
                        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                        span.storeBytes(
                            of: UInt8(truncatingIfNeeded: state >> 56),
                            toByteOffset: row * plane.bytesPerRow + column,
                            as: UInt8.self
                        )
                    }
                }
            }
        )
        return Image(pixels: pixels)
    }

    mutating func transform(_ image: Image) -> ImageTransform {
        switch self.byte() % 15 {
        case 0: ImageTransform(self.resize())
        case 1: ImageTransform(self.crop())
        case 2: ImageTransform(self.pad())
        case 3:
            ImageTransform(
                Trim(
                    color: self.flag() ? self.color() : nil,
                    tolerance: self.byte(),
                    isEvenHorizontally: self.flag(),
                    isEvenVertically: self.flag()
                )
            )
        case 4: ImageTransform(Flip(self.pick(Flip.Direction.allCases)))
        case 5:
            ImageTransform(
                Rotate(
                    degrees: self.flag() ? Double(self.whole()) * 90 : self.real() * 20,
                    canvas: self.pick(Rotate.Canvas.allCases),
                    background: self.color(),
                    interpolation: self.pick(Rotate.Interpolation.allCases)
                )
            )
        case 6:
            ImageTransform(
                RoundCorners(
                    RoundCorners.Radii(
                        topLeft: self.real(),
                        topRight: self.real(),
                        bottomRight: self.real(),
                        bottomLeft: self.real()
                    ),
                    unit: self.pick(RoundCorners.Unit.allCases),
                    border: self.border()
                )
            )
        case 7: ImageTransform(Circle(border: self.border()))
        case 8: ImageTransform(self.adjustment())
        case 9: ImageTransform(Tint(self.color(), mode: self.pick(BlendMode.allCases)))
        case 10: ImageTransform(Flatten(self.color()))
        case 11:
            ImageTransform(
                self.flag()
                    ? Blur.gaussian(sigma: self.real(), light: self.light())
                    : .box(radius: self.whole(), light: self.light())
            )
        case 12: ImageTransform(Sharpen(sigma: self.real(), amount: self.real(), threshold: self.real()))
        case 13: ImageTransform(Pixelate(size: self.whole()))
        default: ImageTransform(self.overlay(image))
        }
    }

    private mutating func border() -> Border? {
        self.flag() ? Border(width: self.real(), color: self.color()) : nil
    }

    private mutating func resize() -> Resize {
        let size: Resize.Size =
            switch self.byte() % 4 {
            case 0: .box(width: self.whole(), height: self.whole())
            case 1: .width(self.whole())
            case 2: .height(self.whole())
            default: .scale(self.real())
            }
        return Resize(
            size,
            mode: self.pick(Resize.Mode.allCases),
            upscales: self.flag(),
            filter: self.pick(Resize.Filter.allCases),
            gravity: self.gravity(),
            light: self.light()
        )
    }

    private mutating func crop() -> Crop {
        switch self.byte() % 4 {
        case 0: .rectangle(x: self.whole(), y: self.whole(), width: self.whole(), height: self.whole())
        case 1: .shares(x: self.real(), y: self.real(), width: self.real(), height: self.real())
        case 2: .size(width: self.whole(), height: self.whole(), gravity: self.gravity())
        default: .aspectRatio(self.real(), gravity: self.gravity())
        }
    }

    private mutating func pad() -> Pad {
        switch self.byte() % 3 {
        case 0:
            .sides(
                left: self.whole(),
                top: self.whole(),
                right: self.whole(),
                bottom: self.whole(),
                color: self.color()
            )
        case 1: .size(width: self.whole(), height: self.whole(), gravity: self.gravity(), color: self.color())
        default: .aspectRatio(self.real(), gravity: self.gravity(), color: self.color())
        }
    }

    private mutating func adjustment() -> ColorAdjustment {
        switch self.byte() % 8 {
        case 0: .brightness(self.real())
        case 1: .contrast(self.real())
        case 2: .saturation(self.real())
        case 3: .gamma(self.real())
        case 4: .hue(degrees: self.real())
        case 5: .grayscale
        case 6: .invert
        default: .sepia
        }
    }

    private mutating func overlay(_ image: Image) -> Overlay {
        Overlay(
            (try? self.image()) ?? image,
            name: "a",
            placement: self.flag()
                ? .single(self.gravity(), offsetX: self.real(), offsetY: self.real())
                : .tiled(self.gravity(), gapX: self.real(), gapY: self.real()),
            unit: self.pick(Overlay.Unit.allCases),
            scale: self.flag() ? self.real() : nil,
            opacity: self.real(),
            mode: self.pick(BlendMode.allCases)
        )
    }
}
