// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
public import TintypeImage

/// Cuts a part out of an image.
///
/// The part is clamped to the image. A part that lies outside the image is an error.
public struct Crop: ImageTransformer, Hashable {
    /// How the part is specified.
    public enum Area: Sendable, Hashable, Encodable {
        /// A rectangle in pixels.
        case rectangle(x: Int, y: Int, width: Int, height: Int)
        /// A rectangle in shares of the image's sides, 0 to 1, rounded to whole pixels, at least one.
        case shares(x: Double, y: Double, width: Double, height: Double)
        /// A size in pixels, placed by gravity.
        case size(width: Int, height: Int, gravity: Gravity)
        /// The largest part whose width is `ratio` times its height, placed by gravity.
        case aspectRatio(ratio: Double, gravity: Gravity)
    }

    /// The part to keep.
    public var area: Area

    /// Creates a crop that keeps `area`.
    ///
    /// ```swift
    /// let square = try Crop(.size(width: 400, height: 400, gravity: .north)).transform(image)
    /// ```
    public init(_ area: Area) {
        self.area = area
    }

    /// Keeps a rectangle in pixels.
    ///
    /// ```swift
    /// request.transforms = [.crop(.rectangle(x: 100, y: 50, width: 640, height: 480))]
    /// ```
    public static func rectangle(x: Int, y: Int, width: Int, height: Int) -> Crop {
        Crop(.rectangle(x: x, y: y, width: width, height: height))
    }

    /// Keeps a rectangle in shares of the image's sides, rounded to whole pixels.
    ///
    /// ```swift
    /// request.transforms = [.crop(.shares(x: 0.25, y: 0.25, width: 0.5, height: 0.5))]  // the middle
    /// ```
    public static func shares(x: Double, y: Double, width: Double, height: Double) -> Crop {
        Crop(.shares(x: x, y: y, width: width, height: height))
    }

    /// Keeps a part of the given size in pixels; each side is clamped to the image.
    ///
    /// ```swift
    /// request.transforms = [.crop(.size(width: 400, height: 400, gravity: .focus(x: 0.4, y: 0.3)))]
    /// ```
    public static func size(width: Int, height: Int, gravity: Gravity = .center) -> Crop {
        Crop(.size(width: width, height: height, gravity: gravity))
    }

    /// Keeps the largest part whose width is `ratio` times its height.
    ///
    /// ```swift
    /// request.transforms = [.crop(.aspectRatio(16 / 9))]  // 1,600 x 1,200 becomes 1,600 x 900
    /// ```
    public static func aspectRatio(_ ratio: Double, gravity: Gravity = .center) -> Crop {
        Crop(.aspectRatio(ratio: ratio, gravity: gravity))
    }

    public var key: String {
        switch self.area {
        case .rectangle(let x, let y, let width, let height): "crop(\(x),\(y),\(width)x\(height))"
        case .shares(let x, let y, let width, let height): "crop(shares,\(x),\(y),\(width),\(height))"
        case .size(let width, let height, let gravity): "crop(\(width)x\(height),\(gravity))"
        case .aspectRatio(let ratio, let gravity): "crop(ratio,\(ratio),\(gravity))"
        }
    }

    /// Returns the part to keep of an image of `width` by `height`: at least a pixel, within the image.
    ///
    /// - Throws: `TransformError.Code.invalidParameter` if no pixel is kept, or a parameter is invalid.
    package func rectangle(width: Int, height: Int) throws(TransformError) -> PixelRectangle {
        switch self.area {
        case .rectangle(let x, let y, let partWidth, let partHeight):
            let part = PixelRectangle(x: x, y: y, width: partWidth, height: partHeight)
            guard partWidth > 0, partHeight > 0, let part = part.cut(toWidth: width, height: height) else {
                throw .invalidParameter(
                    "An image of \(width)x\(height) pixels has nothing at \(x),\(y) \(partWidth)x\(partHeight); "
                        + "name a part of it."
                )
            }
            return part
        case .shares(let x, let y, let partWidth, let partHeight):
            guard let columns = Self.pixels(x, partWidth, of: width), let rows = Self.pixels(y, partHeight, of: height)
            else {
                throw .invalidParameter(
                    "No image has a part at \(x),\(y) of \(partWidth) by \(partHeight) of its sides; "
                        + "give shares from 0 to 1."
                )
            }
            return PixelRectangle(x: columns.lowerBound, y: rows.lowerBound, width: columns.count, height: rows.count)
        case .size(let partWidth, let partHeight, let gravity):
            guard partWidth > 0, partHeight > 0 else {
                throw .invalidParameter("An image cannot be cut to \(partWidth)x\(partHeight); give at least 1 pixel.")
            }
            return gravity.part(min(partWidth, width), min(partHeight, height), ofWidth: width, height: height)
        case .aspectRatio(let ratio, let gravity):
            let part = try AspectRatio(ratio).largest(inWidth: width, height: height)
            return gravity.part(part.width, part.height, ofWidth: width, height: height)
        }
    }

    /// Returns the pixels of a side of `total` that a share of it covers, or `nil` if it covers none.
    private static func pixels(_ start: Double, _ length: Double, of total: Int) -> Range<Int>? {
        guard start.isFinite, length.isFinite, length > 0, start < 1, start + length > 0 else { return nil }
        let side = Double(total)
        let first = min(Int((max(0, start) * side).rounded()), total - 1)
        let last = Int((min(1, start + length) * side).rounded())
        return first..<max(first + 1, last)
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        let part = try self.rectangle(width: source.width, height: source.height)
        return TransformFootprint(result: try .result(source.format, width: part.width, height: part.height))
    }

    public func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        let part = try self.rectangle(width: image.width, height: image.height)
        guard part.width < image.width || part.height < image.height else { return image }
        return image.replacingPixels(try image.pixels.cut(to: part), orientation: .up)
    }
}

extension Gravity {
    /// Returns the part of a given size, no larger than the image, around this point.
    func part(_ width: Int, _ height: Int, ofWidth totalWidth: Int, height totalHeight: Int) -> PixelRectangle {
        PixelRectangle(
            x: Int(self.start(of: Double(width), in: Double(totalWidth), along: .horizontal).rounded()),
            y: Int(self.start(of: Double(height), in: Double(totalHeight), along: .vertical).rounded()),
            width: width,
            height: height
        )
    }
}

/// A valid ratio of width to height.
struct AspectRatio {
    private let value: Double

    /// - Throws: `TransformError.Code.invalidParameter` unless the ratio is finite and over 0.
    init(_ value: Double) throws(TransformError) {
        guard value.isFinite, value > 0 else {
            throw .invalidParameter("No image is \(value) times as wide as high; give a ratio over 0.")
        }
        self.value = value
    }

    /// Returns the largest size with this ratio within another size, rounded to whole pixels.
    func largest(inWidth width: Int, height: Int) -> (width: Int, height: Int) {
        let wide = Double(height) * self.value
        if wide <= Double(width) { return (max(1, Int(wide.rounded())), height) }
        return (width, min(height, max(1, Int((Double(width) / self.value).rounded()))))
    }

    /// Returns the smallest size with this ratio around another size, rounded to whole pixels.
    ///
    /// - Throws: `TransformError.Code.invalidSize` if a side would be over `Int32.max`.
    func smallest(aroundWidth width: Int, height: Int) throws(TransformError) -> (width: Int, height: Int) {
        let wide = max(Double(width), Double(height) * self.value).rounded()
        let high = max(Double(height), Double(width) / self.value).rounded()
        guard wide <= Double(Int32.max), high <= Double(Int32.max) else {
            throw .invalidSize(
                "An image of \(width)x\(height) pixels would be too large at \(self.value) times as wide as high."
            )
        }
        return (Int(wide), Int(high))
    }
}

extension PixelBuffer {
    /// Returns the pixels of a part, which must be within the image.
    func cut(to part: PixelRectangle) throws -> PixelBuffer {
        let layout = try PixelLayout.result(self.format, width: part.width, height: part.height)
        let (from, to) = (self.layout.planes[0], layout.planes[0])
        let start = from.offset + part.y * from.bytesPerRow + part.x * self.format.channelCount
        // Bypass the cache if the part exceeds a core's share of it: the next step would find little of it there.
        let isLarge = layout.byteCount >= 16 << 20
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                try self.withUnsafeBytes { source in
                    guard let source = source.baseAddress, let target = target.baseAddress else { return }
                    for row in stride(from: 0, to: part.height, by: 256) {
                        try Task.checkCancellation()
                        cpixels_copy_rows(
                            source + start + row * from.bytesPerRow,
                            from.bytesPerRow,
                            target + row * to.bytesPerRow,
                            to.bytesPerRow,
                            to.usedBytesPerRow,
                            min(256, part.height - row),
                            isLarge ? 1 : 0
                        )
                    }
                }
            }
        )
    }
}

extension Crop: Codable {
    private enum CodingKeys: String, CodingKey {
        case rectangle, shares, size, aspectRatio
    }

    private enum AreaKeys: String, CodingKey {
        case x, y, width, height, ratio, gravity
    }

    /// Reads an area by the name of its case, such as `{"size": {"width": 400, "height": 300}}`.
    ///
    /// `gravity` defaults to `center`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        guard container.allKeys.count == 1, let name = container.allKeys.first else {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: decoder.codingPath,
                    debugDescription: "Write one of rectangle, shares, size and aspectRatio."
                )
            )
        }
        let area = try container.superDecoder(forKey: name).container(onlyOf: AreaKeys.self)
        let gravity = try area.decodeIfPresent(Gravity.self, forKey: .gravity) ?? .center
        switch name {
        case .rectangle:
            self = .rectangle(
                x: try area.decode(Int.self, forKey: .x),
                y: try area.decode(Int.self, forKey: .y),
                width: try area.decode(Int.self, forKey: .width),
                height: try area.decode(Int.self, forKey: .height)
            )
        case .shares:
            self = .shares(
                x: try area.decode(Double.self, forKey: .x),
                y: try area.decode(Double.self, forKey: .y),
                width: try area.decode(Double.self, forKey: .width),
                height: try area.decode(Double.self, forKey: .height)
            )
        case .size:
            self = .size(
                width: try area.decode(Int.self, forKey: .width),
                height: try area.decode(Int.self, forKey: .height),
                gravity: gravity
            )
        case .aspectRatio:
            self = .aspectRatio(try area.decode(Double.self, forKey: .ratio), gravity: gravity)
        }
    }

    /// Writes the area.
    public func encode(to encoder: any Encoder) throws {
        try self.area.encode(to: encoder)
    }
}

extension Crop: GeometricTransformer {
    package func add(to geometry: inout TransformGeometry) throws(TransformError) -> Bool {
        let size = geometry.turnedSize
        geometry.crop(to: try self.rectangle(width: size.width, height: size.height))
        return true
    }
}
