// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
public import TintypeImage

/// Puts an image on a larger canvas, without cutting anything off.
public struct Pad: ImageTransformer, Hashable {
    /// How the canvas is specified.
    public enum Extent: Sendable, Hashable, Encodable {
        /// The columns and rows to add to each side, in pixels.
        case sides(left: Int, top: Int, right: Int, bottom: Int)
        /// The size in pixels; each side is at least as long as the image's.
        case size(width: Int, height: Int, gravity: Gravity)
        /// The smallest canvas that holds the image and whose width is `ratio` times its height.
        case aspectRatio(ratio: Double, gravity: Gravity)
    }

    /// The canvas.
    public var extent: Extent
    /// The colour outside the image; transparent by default, which gives the result alpha.
    public var color: Color

    /// Creates a transform for a canvas, by default a transparent one.
    ///
    /// ```swift
    /// let letterboxed = try Pad(.aspectRatio(ratio: 16 / 9, gravity: .center), color: .black).transform(image)
    /// ```
    public init(_ extent: Extent, color: Color = .clear) {
        self.extent = extent
        self.color = color
    }

    /// Adds columns and rows to the sides, in pixels.
    ///
    /// ```swift
    /// request.transforms = [.pad(.sides(top: 20, bottom: 20, color: .white))]  // 800 x 600 becomes 800 x 640
    /// ```
    public static func sides(
        left: Int = 0,
        top: Int = 0,
        right: Int = 0,
        bottom: Int = 0,
        color: Color = .clear
    ) -> Pad {
        Pad(.sides(left: left, top: top, right: right, bottom: bottom), color: color)
    }

    /// Extends the image to a size in pixels, and places it by `gravity`.
    ///
    /// ```swift
    /// request.transforms = [.pad(.size(width: 800, height: 800, gravity: .north, color: .black))]
    /// ```
    public static func size(width: Int, height: Int, gravity: Gravity = .center, color: Color = .clear) -> Pad {
        Pad(.size(width: width, height: height, gravity: gravity), color: color)
    }

    /// Extends one side, so that the width of the result is `ratio` times its height.
    ///
    /// ```swift
    /// request.transforms = [.pad(.aspectRatio(1, color: .white))]  // 800 x 600 becomes 800 x 800
    /// ```
    public static func aspectRatio(_ ratio: Double, gravity: Gravity = .center, color: Color = .clear) -> Pad {
        Pad(.aspectRatio(ratio: ratio, gravity: gravity), color: color)
    }

    public var key: String {
        switch self.extent {
        case .sides(let left, let top, let right, let bottom): "pad(\(left),\(top),\(right),\(bottom),\(self.color))"
        case .size(let width, let height, let gravity): "pad(\(width)x\(height),\(gravity),\(self.color))"
        case .aspectRatio(let ratio, let gravity): "pad(ratio,\(ratio),\(gravity),\(self.color))"
        }
    }

    /// Returns the place of an image of `width` by `height` in the result, and the size of the result.
    private func canvas(
        width: Int,
        height: Int
    ) throws(TransformError) -> (inside: PixelRectangle, width: Int, height: Int) {
        switch self.extent {
        case .sides(let left, let top, let right, let bottom):
            guard min(left, top, right, bottom) >= 0 else {
                throw .invalidParameter("Sides cannot grow by \(left),\(top),\(right),\(bottom); give 0 or more.")
            }
            try Self.checkSizes(left, top, right, bottom)
            let inside = PixelRectangle(x: left, y: top, width: width, height: height)
            return (inside, left + width + right, top + height + bottom)
        case .size(let canvasWidth, let canvasHeight, let gravity):
            guard canvasWidth > 0, canvasHeight > 0 else {
                throw .invalidParameter("No image is \(canvasWidth)x\(canvasHeight); give at least 1 pixel.")
            }
            try Self.checkSizes(canvasWidth, canvasHeight)
            let size = (width: max(width, canvasWidth), height: max(height, canvasHeight))
            return (gravity.part(width, height, ofWidth: size.width, height: size.height), size.width, size.height)
        case .aspectRatio(let ratio, let gravity):
            let size = try AspectRatio(ratio).smallest(aroundWidth: width, height: height)
            return (gravity.part(width, height, ofWidth: size.width, height: size.height), size.width, size.height)
        }
    }

    /// Checks that sums of the sizes cannot overflow; `PixelLayout` checks whether the result is too large.
    private static func checkSizes(_ sizes: Int...) throws(TransformError) {
        guard let most = sizes.max(), most > Int(Int32.max) else { return }
        throw .invalidSize(
            "No image can be extended by \(most) pixels or to that many; give at most \(Int32.max)."
        )
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        let canvas = try self.canvas(width: source.width, height: source.height)
        guard canvas.width > source.width || canvas.height > source.height else {
            return TransformFootprint(result: source)
        }
        let format = source.format.joined(with: self.color)
        return TransformFootprint(result: try .result(format, width: canvas.width, height: canvas.height))
    }

    public func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        let layout = try self.footprint(for: image.pixels.layout).result
        let inside = try self.canvas(width: image.width, height: image.height).inside
        guard layout.width > image.width || layout.height > image.height else { return image }
        let to = layout.planes[0]
        let from = image.pixels.layout.planes[0]
        let channels = (from: image.pixels.format.channelCount, to: layout.format.channelCount)
        let pixels = try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                try image.pixels.withUnsafeBytes { source in
                    guard let target = target.baseAddress, let source = source.baseAddress else { return }
                    let samples = [self.color.red, self.color.green, self.color.blue, self.color.alpha]
                    for row in 0..<to.height {
                        if row % 256 == 0 { try Task.checkCancellation() }
                        let line = (target + row * to.bytesPerRow).assumingMemoryBound(to: UInt8.self)
                        func fill(_ columns: Range<Int>) {
                            cpixels_fill(line + columns.lowerBound * channels.to, samples, channels.to, columns.count)
                        }
                        guard row >= inside.y, row < inside.y + inside.height else {
                            fill(0..<to.width)
                            continue
                        }
                        fill(0..<inside.x)
                        fill(inside.x + inside.width..<to.width)
                        cpixels_convert(
                            (source + (row - inside.y) * from.bytesPerRow).assumingMemoryBound(to: UInt8.self),
                            channels.from,
                            line + inside.x * channels.to,
                            channels.to,
                            inside.width
                        )
                    }
                }
            }
        )
        return image.replacingPixels(pixels, orientation: .up)
    }
}

extension Pad: Codable {
    private enum CodingKeys: String, CodingKey {
        case sides, size, aspectRatio, color
    }

    private enum ExtentKeys: String, CodingKey {
        case left, top, right, bottom, width, height, ratio, gravity
    }

    /// Reads an extent by the name of its case, such as `{"sides": {"left": 10}, "color": "#fff"}`.
    ///
    /// Sides default to 0, `gravity` to `center` and `color` to transparent.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        let names = container.allKeys.filter { $0 != .color }
        guard names.count == 1, let name = names.first else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "Write one of sides, size and aspectRatio.")
            )
        }
        let extent = try container.superDecoder(forKey: name).container(onlyOf: ExtentKeys.self)
        let gravity = try extent.decodeIfPresent(Gravity.self, forKey: .gravity) ?? .center
        if name == .sides {
            func side(_ key: ExtentKeys) throws -> Int { try extent.decodeIfPresent(Int.self, forKey: key) ?? 0 }
            self = .sides(
                left: try side(.left),
                top: try side(.top),
                right: try side(.right),
                bottom: try side(.bottom)
            )
        } else if name == .size {
            self = .size(
                width: try extent.decode(Int.self, forKey: .width),
                height: try extent.decode(Int.self, forKey: .height),
                gravity: gravity
            )
        } else {
            self = .aspectRatio(try extent.decode(Double.self, forKey: .ratio), gravity: gravity)
        }
        self.color = try container.decodeIfPresent(Color.self, forKey: .color) ?? .clear
    }

    /// Writes the extent and the colour.
    public func encode(to encoder: any Encoder) throws {
        try self.extent.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.color, forKey: .color)
    }
}
