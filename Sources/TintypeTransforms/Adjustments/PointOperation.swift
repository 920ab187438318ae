// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import Glibc
package import TintypeImage

/// A transformer that computes each pixel from the pixel at the same place.
///
/// One ``PointPass`` runs consecutive operations in one pass over memory, without rounding between them.
package protocol PointOperation: ImageTransformer {
    /// Returns the steps to apply to each pixel, in order.
    ///
    /// - Throws: `TransformError` if a parameter is invalid.
    func steps() throws(TransformError) -> [PointStep]
}

/// A step that changes one pixel, with straight alpha and colours from 0 to 1.
package enum PointStep {
    /// Applies a colour matrix.
    case matrix(ColorMatrix)
    /// Raises the colours to a power over 0.
    case power(Double)
    /// Draws a colour over the pixel.
    case draw(Color, Composition)

    /// Returns the format of the result for an image of `format`, or `nil` if the step changes nothing.
    fileprivate func result(for format: PixelFormat) -> PixelFormat? {
        switch self {
        case .matrix(let matrix):
            if matrix == .identity { return nil }
            if format == .gray8 { return matrix.keepsGrays ? nil : matrix.makesGraysOfGrays ? .gray8 : .rgb8 }
            return format == .rgb8 && matrix.makesGrays ? .gray8 : format
        case .power(let exponent): return exponent == 1 ? nil : format
        case .draw(let color, let composition):
            return composition.result(ofDrawing: color, over: format)
        }
    }
}

/// Runs point operations on an image in one pass over memory, row by row, in 32-bit floating point.
///
/// Consecutive matrices are multiplied. If every colour depends only on itself, one lookup table for each colour
/// replaces all steps. Steps that change nothing are left out; if no step remains, the result is the image itself.
package struct PointPass {
    private let steps: [PointStep]

    /// - Throws: `TransformError` if a parameter of an operation is invalid.
    package init(_ operations: [any PointOperation]) throws(TransformError) {
        var steps: [PointStep] = []
        for operation in operations { steps += try operation.steps() }
        self.steps = steps
    }

    /// Returns the layout of the result, and the memory that the pass needs.
    package func footprint(for source: PixelLayout) throws(ImageError) -> TransformFootprint {
        let plan = PointPlan(self.steps, format: source.format, mayBecomeGray: false)
        let result = try PixelLayout(format: plan.result, width: source.width, height: source.height)
        return TransformFootprint(result: result, workingByteCount: plan.isNeeded ? PointPlan.workingByteCount : 0)
    }

    /// Returns the transformed image.
    ///
    /// - Throws: `ImageError` if memory runs out, `CancellationError`.
    package func transform(_ image: Image) throws -> Image {
        // A colour profile does not fit gray samples.
        let plan = PointPlan(self.steps, format: image.pixels.format, mayBecomeGray: image.colorProfile == nil)
        guard plan.isNeeded else { return image }
        let source = image.pixels
        let layout = try PixelLayout(format: plan.result, width: source.width, height: source.height)
        let pixels = try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                try source.withUnsafeBytes { try plan.run($0, source.layout, to: target, layout) }
            }
        )
        return image.replacingPixels(pixels, orientation: image.orientation)
    }
}

/// The steps that remain for a pixel format, and the format of the result.
private struct PointPlan {
    /// The number of pixels in a tile; the planes of a tile stay in the nearest cache.
    private static let tileWidth = 512
    /// The bytes of a tile's planes and of the planes for a colour that is drawn over it.
    static let workingByteCount = 2 * 4 * tileWidth * MemoryLayout<Float>.stride

    let result: PixelFormat
    let isNeeded: Bool
    private let steps: [PointStep]

    init(_ steps: [PointStep], format: PixelFormat, mayBecomeGray: Bool) {
        var result = format
        var needed: [PointStep] = []
        for step in steps {
            guard let next = step.result(for: result) else { continue }
            result = next
            if case .matrix(let matrix) = step, case .matrix(let last) = needed.last {
                needed[needed.count - 1] = .matrix(last.followed(by: matrix))
            } else {
                needed.append(step)
            }
        }
        self.result = result == .gray8 && format != .gray8 && !mayBecomeGray ? .rgb8 : result
        self.steps = needed
        self.isNeeded = !needed.isEmpty
    }

    /// Writes all rows of the result.
    func run(
        _ source: UnsafeRawBufferPointer,
        _ sourceLayout: PixelLayout,
        to target: UnsafeMutableRawBufferPointer,
        _ layout: PixelLayout
    ) throws {
        guard let from = source.baseAddress, let to = target.baseAddress else { return }
        let tables = sourceLayout.format == layout.format ? self.tables : nil
        let tile = try AlignedMemory(byteCount: Self.workingByteCount)
        let planes = tile.start.bindMemory(to: Float.self, capacity: 8 * Self.tileWidth)
        for row in 0..<layout.height {
            if row % 16 == 0 { try Task.checkCancellation() }
            let samples = (from + row * sourceLayout.planes[0].bytesPerRow).assumingMemoryBound(to: UInt8.self)
            let made = (to + row * layout.planes[0].bytesPerRow).assumingMemoryBound(to: UInt8.self)
            if let tables {
                cpixels_apply_tables(tables, samples, made, layout.format.channelCount, layout.width)
            } else {
                self.run(samples, sourceLayout.format, to: made, width: layout.width, planes)
            }
        }
    }

    private func run(
        _ samples: UnsafePointer<UInt8>,
        _ format: PixelFormat,
        to target: UnsafeMutablePointer<UInt8>,
        width: Int,
        _ planes: UnsafeMutablePointer<Float>
    ) {
        let stride = Self.tileWidth
        let (channels, resultChannels) = (format.channelCount, self.result.channelCount)
        for start in Swift.stride(from: 0, to: width, by: stride) {
            let count = min(stride, width - start)
            cpixels_to_planes(samples + start * channels, channels, planes, stride, count)
            for step in self.steps { step.run(planes, stride: stride, count: count) }
            cpixels_from_planes(planes, stride, target + start * resultChannels, resultChannels, count)
        }
    }

    /// The 256 results for each colour, or `nil` if a colour depends on anything but itself.
    private var tables: [UInt8]? {
        for step in self.steps {
            switch step {
            case .matrix(let matrix) where matrix.isDiagonal: continue
            case .power: continue
            default: return nil
            }
        }
        return (0..<3).flatMap { channel in
            (0..<256).map { sample in
                let value = self.steps.reduce(Double(sample) / 255) { value, step in
                    switch step {
                    case .matrix(let matrix): matrix.apply(to: value, channel: channel)
                    case .power(let exponent): pow(max(0, value), exponent)
                    case .draw: value
                    }
                }
                // An overflow before this point can give NaN. Treat it as black, as the kernels do.
                return value > 0 ? UInt8((min(value, 1) * 255).rounded()) : 0
            }
        }
    }
}

extension PointStep {
    /// Applies the step to the planes of a tile; the memory behind them has room for the planes of a colour.
    fileprivate func run(_ planes: UnsafeMutablePointer<Float>, stride: Int, count: Int) {
        switch self {
        case .matrix(let matrix):
            cpixels_apply_matrix(matrix.numbers, planes, stride, count)
        case .power(let exponent):
            cpixels_apply_power(Float(exponent), planes, stride, count)
        case .draw(let color, let composition):
            let source = planes + 4 * stride
            for (channel, sample) in [color.red, color.green, color.blue, color.alpha].enumerated() {
                (source + channel * stride).update(repeating: Float(sample) / 255, count: count)
            }
            composition.draw(source, over: planes, stride: stride, count: count)
        }
    }
}
