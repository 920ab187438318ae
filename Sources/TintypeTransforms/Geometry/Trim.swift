// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
public import TintypeImage

/// Cuts off borders of one colour.
///
/// A pixel belongs to the border if each sample is within the tolerance of the border's colour. Colours are compared
/// premultiplied, with alpha as a separate sample. So invisible pixels are equal whatever their colour, and transparent
/// borders are cut off only if the colour is transparent. An image that consists only of border does not change.
public struct Trim: ImageTransformer, Hashable {
    /// The border's colour; `nil`, the default, takes the colour of the top left pixel.
    public var color: Color?
    /// The largest distance of a border sample from the colour, 0 to 255.
    public var tolerance: UInt8
    /// Whether the left and the right side lose the same number of columns, the smaller of the two.
    public var isEvenHorizontally: Bool
    /// Whether the top and the bottom lose the same number of rows, the smaller of the two.
    public var isEvenVertically: Bool

    /// Creates a trim; by default the border has the colour of the top left pixel, with a tolerance of 10.
    ///
    /// ```swift
    /// let trimmed = try Trim(color: .white, tolerance: 20).transform(image)
    /// ```
    public init(
        color: Color? = nil,
        tolerance: UInt8 = 10,
        isEvenHorizontally: Bool = false,
        isEvenVertically: Bool = false
    ) {
        self.color = color
        self.tolerance = tolerance
        self.isEvenHorizontally = isEvenHorizontally
        self.isEvenVertically = isEvenVertically
    }

    public var key: String {
        let even =
            (self.isEvenHorizontally ? ",evenHorizontally" : "") + (self.isEvenVertically ? ",evenVertically" : "")
        return "trim(\(self.color?.hex ?? "topLeft"),\(self.tolerance)\(even))"
    }

    public func transform(_ image: Image) throws -> Image {
        let image = try image.upright()
        let part = try self.rectangle(of: image.pixels)
        guard part.width < image.width || part.height < image.height else { return image }
        return image.replacingPixels(try image.pixels.cut(to: part), orientation: .up)
    }

    /// Returns the part that remains of an image.
    private func rectangle(of pixels: PixelBuffer) throws -> PixelRectangle {
        let plane = pixels.layout.planes[0]
        let channels = pixels.format.channelCount
        return try pixels.withUnsafeBytes { bytes in
            let whole = PixelRectangle(x: 0, y: 0, width: plane.width, height: plane.height)
            guard let base = bytes.baseAddress else { return whole }
            let samples = base.assumingMemoryBound(to: UInt8.self) + plane.offset
            func pixel(_ column: Int, _ row: Int) -> UnsafePointer<UInt8> {
                samples + row * plane.bytesPerRow + column * channels
            }
            var likeness = self.likeness(topLeft: samples, channels: channels)
            func isContent(_ row: Int) throws -> Bool {
                if row % 64 == 0 { try Task.checkCancellation() }
                return cpixels_first_unlike(pixel(0, row), channels, plane.width, &likeness) < plane.width
            }
            guard var top = try (0..<plane.height).first(where: isContent) else { return whole }
            var bottom = try (top..<plane.height).last(where: isContent).map { $0 + 1 } ?? plane.height
            var (left, right) = (plane.width, 0)
            for row in top..<bottom {
                if row % 64 == 0 { try Task.checkCancellation() }
                left = min(left, cpixels_first_unlike(pixel(0, row), channels, left, &likeness))
                right += cpixels_end_of_unlike(pixel(right, row), channels, plane.width - right, &likeness)
            }
            if self.isEvenHorizontally {
                left = min(left, plane.width - right)
                right = plane.width - left
            }
            if self.isEvenVertically {
                top = min(top, plane.height - bottom)
                bottom = plane.height - top
            }
            return PixelRectangle(x: left, y: top, width: right - left, height: bottom - top)
        }
    }

    private func likeness(topLeft pixel: UnsafePointer<UInt8>, channels: Int) -> cpixels_likeness {
        let color =
            self.color
            ?? (channels == 1
                ? Color(red: pixel[0], green: pixel[0], blue: pixel[0])
                : Color(red: pixel[0], green: pixel[1], blue: pixel[2], alpha: channels == 4 ? pixel[3] : 255))
        let alpha = Int32(color.alpha)
        return cpixels_likeness(
            color: (Int32(color.red) * alpha, Int32(color.green) * alpha, Int32(color.blue) * alpha, alpha * 255),
            tolerance: Int32(self.tolerance)
        )
    }
}

extension Trim: Codable {
    private enum CodingKeys: String, CodingKey {
        case color, tolerance
        case isEvenHorizontally = "evenHorizontally"
        case isEvenVertically = "evenVertically"
    }

    /// Reads the parameters, all of which have defaults.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        self.init(color: try container.decodeIfPresent(Color.self, forKey: .color))
        let tolerance = try container.decodeIfPresent(Int.self, forKey: .tolerance) ?? Int(self.tolerance)
        guard let tolerance = UInt8(exactly: tolerance) else {
            // The decoder's own error would say that the JSON has no number here, although the number is only out of
            // range.
            throw DecodingError.dataCorruptedError(
                forKey: .tolerance,
                in: container,
                debugDescription: "A tolerance is 0 to 255, and not \(tolerance)."
            )
        }
        self.tolerance = tolerance
        self.isEvenHorizontally = try container.decodeIfPresent(Bool.self, forKey: .isEvenHorizontally) ?? false
        self.isEvenVertically = try container.decodeIfPresent(Bool.self, forKey: .isEvenVertically) ?? false
    }
}
