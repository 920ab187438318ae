// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import Glibc
public import TintypeImage

/// Rotates an image clockwise by any angle.
///
/// Quarter turns are exact. Other angles interpolate with premultiplied alpha, and the image's edge is smooth: a pixel
/// that is half outside the image is half background.
public struct Rotate: ImageTransformer, Hashable {
    /// The size of the result.
    public enum Canvas: String, Sendable, Hashable, Codable, CaseIterable {
        /// Large enough for the whole rotated image.
        case fit
        /// The size of the source image; the corners outside it are cut off.
        case clip
    }

    /// How a pixel is computed from the source pixels around its place.
    public enum Interpolation: String, Sendable, Hashable, Codable, CaseIterable {
        /// The nearest pixel, for pixel art; edges are not smooth.
        case nearest
        /// From 2x2 pixels; softer.
        case bilinear
        /// From 4x4 pixels, with the cubic of Catmull and Rom; sharper.
        case bicubic
    }

    /// The angle in degrees, clockwise; any finite number.
    public var degrees: Double
    /// The size of the result.
    public var canvas: Canvas
    /// The colour outside the image; transparent by default, which gives the result alpha.
    public var background: Color
    /// How a pixel is computed from the source pixels around its place.
    public var interpolation: Interpolation

    /// Creates a rotation; by default the canvas fits, the background is transparent and interpolation is bicubic.
    ///
    /// ```swift
    /// let level = try Rotate(degrees: -1.5, canvas: .clip, background: .white).transform(image)
    /// ```
    public init(
        degrees: Double,
        canvas: Canvas = .fit,
        background: Color = .clear,
        interpolation: Interpolation = .bicubic
    ) {
        self.degrees = degrees
        self.canvas = canvas
        self.background = background
        self.interpolation = interpolation
    }

    /// The angle from 0 to under 360, or `nan` if `degrees` is not finite.
    private var angle: Double {
        let rest = self.degrees.truncatingRemainder(dividingBy: 360)
        let angle = rest < 0 ? rest + 360 : abs(rest)
        // Adding 360 to a tiny negative angle rounds to 360.
        return angle == 360 ? 0 : angle
    }

    public var key: String {
        "rotate(\(self.angle),\(self.canvas.rawValue),\(self.background),\(self.interpolation.rawValue))"
    }

    /// The equivalent quarter turn, ignoring the canvas; `nil` for other angles.
    private var quarterTurn: Orientation? {
        switch self.angle {
        case 0: .up
        case 90: .right
        case 180: .down
        case 270: .left
        default: nil
        }
    }

    /// The orientation with the same effect, for joining with other turns; `nil` if no orientation has it.
    package var orientation: Orientation? {
        guard let turn = self.quarterTurn, self.canvas == .fit || !turn.swapsSides else { return nil }
        return turn
    }

    /// Returns the crop and the pad around a quarter turn on a canvas that keeps its size.
    private func clipped(width: Int, height: Int) -> (crop: Crop, pad: Pad) {
        let side = min(width, height)
        return (.size(width: side, height: side), .size(width: width, height: height, color: self.background))
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        let (width, height) = (source.width, source.height)
        if let turn = self.orientation {
            let size = turn.uprightSize(width: width, height: height)
            return TransformFootprint(result: try .result(source.format, width: size.width, height: size.height))
        }
        if self.quarterTurn != nil {
            let (crop, pad) = self.clipped(width: width, height: height)
            let square = try crop.footprint(for: source).result
            let result = try pad.footprint(for: square).result
            return TransformFootprint(result: result, workingByteCount: 2 * square.byteCount)
        }
        return TransformFootprint(result: try FreeRotation(self, angle: self.angle, of: source).layout)
    }

    public func transform(_ image: Image) throws -> Image {
        if let turn = self.orientation { return try image.turned(turn) }
        let image = try image.upright()
        if let turn = self.quarterTurn {
            let (crop, pad) = self.clipped(width: image.width, height: image.height)
            return try pad.transform(crop.transform(image).turned(turn))
        }
        let rotation = try FreeRotation(self, angle: self.angle, of: image.pixels.layout)
        return image.replacingPixels(try rotation.rotate(image.pixels), orientation: .up)
    }
}

/// A rotation by an angle other than a quarter turn.
private struct FreeRotation {
    /// The layout of the result.
    let layout: PixelLayout
    private let rotate: Rotate
    /// The source position of the middle of the first result pixel, in fixed point.
    private let start: (column: Int64, row: Int64)
    /// The source distance of a step to the right, in fixed point; a step down is this one turned by a quarter.
    private let step: (column: Int64, row: Int64)

    /// - Throws: `TransformError.Code.invalidParameter` if the angle is not finite, `.invalidSize` if the result is too
    ///   large.
    init(_ rotate: Rotate, angle: Double, of source: PixelLayout) throws(TransformError) {
        guard angle.isFinite else {
            throw .invalidParameter("An image cannot be turned by \(rotate.degrees) degrees; give a finite number.")
        }
        let (cosine, sine) = (cos(angle * .pi / 180), sin(angle * .pi / 180))
        let (width, height) = (Double(source.width), Double(source.height))
        var size = (width: source.width, height: source.height)
        if rotate.canvas == .fit {
            // A rounding error must not add a pixel to a side of a whole number of pixels.
            func pixels(_ side: Double) -> Int { Int((side - 1e-6).rounded(.up)) }
            size.width = pixels(width * abs(cosine) + height * abs(sine))
            size.height = pixels(width * abs(sine) + height * abs(cosine))
        }
        let format = source.format.joined(with: rotate.background)
        self.layout = try .result(format, width: size.width, height: size.height)
        self.rotate = rotate
        func fixed(_ value: Double) -> Int64 { Int64((value * Double(1 << CPIXELS_ROTATION_BITS)).rounded()) }
        let (column, row) = (0.5 - Double(size.width) / 2, 0.5 - Double(size.height) / 2)
        self.start = (
            fixed(cosine * column + sine * row + width / 2), fixed(cosine * row - sine * column + height / 2)
        )
        self.step = (fixed(cosine), fixed(-sine))
    }

    func rotate(_ source: PixelBuffer) throws -> PixelBuffer {
        let from = source.layout.planes[0]
        let to = self.layout.planes[0]
        let kernel =
            switch self.rotate.interpolation {
            case .nearest: cpixels_rotate_nearest
            case .bilinear: cpixels_rotate_bilinear
            case .bicubic: cpixels_rotate_bicubic
            }
        let background = self.rotate.background
        return try PixelBuffer(
            self.layout,
            fillingUnsafely: { target in
                try source.withUnsafeBytes { bytes in
                    guard let pixels = bytes.baseAddress, let target = target.baseAddress else { return }
                    var rotation = cpixels_rotation(
                        pixels: pixels.assumingMemoryBound(to: UInt8.self) + from.offset,
                        bytes_per_row: from.bytesPerRow,
                        width: Int32(from.width),
                        height: Int32(from.height),
                        channels: Int32(source.format.channelCount),
                        target_channels: Int32(self.layout.format.channelCount),
                        column_step: self.step.column,
                        row_step: self.step.row,
                        background: (background.red, background.green, background.blue, background.alpha)
                    )
                    for row in 0..<to.height {
                        if row % 16 == 0 { try Task.checkCancellation() }
                        kernel(
                            &rotation,
                            self.start.column - Int64(row) * self.step.row,
                            self.start.row + Int64(row) * self.step.column,
                            (target + row * to.bytesPerRow).assumingMemoryBound(to: UInt8.self),
                            to.width
                        )
                    }
                }
            }
        )
    }
}

extension PixelFormat {
    /// Returns the smallest format for pixels of this format and `color`.
    func joined(with color: Color) -> PixelFormat {
        if self.hasAlpha || color.alpha < 255 { return .rgba8 }
        let isGray = color.red == color.green && color.green == color.blue
        return self == .gray8 && isGray ? .gray8 : .rgb8
    }
}

extension Rotate: Codable {
    /// Reads the parameters; all except the angle have defaults.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(degrees: try container.decode(Double.self, forKey: .degrees))
        self.canvas = try container.decodeIfPresent(Canvas.self, forKey: .canvas) ?? self.canvas
        self.background = try container.decodeIfPresent(Color.self, forKey: .background) ?? self.background
        self.interpolation =
            try container.decodeIfPresent(Interpolation.self, forKey: .interpolation) ?? self.interpolation
    }
}

extension Rotate: GeometricTransformer {
    package func add(to geometry: inout TransformGeometry) -> Bool {
        guard let orientation else { return false }
        geometry.turn(orientation)
        return true
    }
}
