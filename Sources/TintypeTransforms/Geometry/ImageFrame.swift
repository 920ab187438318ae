// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import Glibc
import TintypeImage

/// A rectangle with round corners, which can cover pixels in part.
private struct RoundedRectangle {
    let left: Double
    let top: Double
    let right: Double
    let bottom: Double
    let radii: RoundCorners.Radii

    /// Returns the rectangle inset by `width` on all sides, with the same centres of the corners.
    func inset(by width: Double) -> RoundedRectangle {
        RoundedRectangle(
            left: self.left + width,
            top: self.top + width,
            right: self.right - width,
            bottom: self.bottom - width,
            radii: self.radii.map { max(0, $0 - width) }
        )
    }

    /// Returns how much of a pixel is inside, from 0 to 1.
    func coverage(_ column: Int, _ row: Int) -> Double {
        let (x, y) = (Double(column), Double(row))
        let width = min(x + 1, self.right) - max(x, self.left)
        let height = min(y + 1, self.bottom) - max(y, self.top)
        guard width > 0, height > 0 else { return 0 }
        let (fromLeft, fromTop) = (x - self.left, y - self.top)
        let (fromRight, fromBottom) = (self.right - x - 1, self.bottom - y - 1)
        let outside =
            Self.outside(fromLeft, fromTop, self.radii.topLeft)
            + Self.outside(fromRight, fromTop, self.radii.topRight)
            + Self.outside(fromRight, fromBottom, self.radii.bottomRight)
            + Self.outside(fromLeft, fromBottom, self.radii.bottomLeft)
        return min(max(width * height - outside, 0), 1)
    }

    /// Returns the area that a corner cuts off a pixel at the given distances from the corner's two sides.
    private static func outside(_ fromSide: Double, _ fromOtherSide: Double, _ radius: Double) -> Double {
        // Coordinates from the centre of the corner's circle, towards the corner.
        let (x, endX) = (max(radius - fromSide - 1, 0), min(radius - fromSide, radius))
        let (y, endY) = (max(radius - fromOtherSide - 1, 0), min(radius - fromOtherSide, radius))
        guard x < endX, y < endY, endX * endX + endY * endY > radius * radius else { return 0 }
        func circle(_ place: Double) -> Double { max(0, radius * radius - place * place).squareRoot() }
        /// Returns the area under the circle from 0 to `place`.
        func area(_ place: Double) -> Double {
            (place * circle(place) + radius * radius * asin(min(place / radius, 1))) / 2
        }
        // Until `full` the circle is above the pixel; from `end` on it is below.
        let full = min(max(circle(endY), x), endX)
        let end = min(max(circle(y), full), endX)
        let inside = (full - x) * (endY - y) + area(end) - area(full) - (end - full) * y
        return (endX - x) * (endY - y) - inside
    }

    /// Returns the pixels of a row that are at least partly inside, and the pixels that are fully inside.
    func columns(of row: Int) -> (touched: Range<Int>, solid: Range<Int>) {
        let (y, endY) = (max(Double(row), self.top), min(Double(row + 1), self.bottom))
        guard y < endY, self.left < self.right else { return (0..<0, 0..<0) }
        let atLeft = self.insets(y, endY, self.radii.topLeft, self.radii.bottomLeft)
        let atRight = self.insets(y, endY, self.radii.topRight, self.radii.bottomRight)
        let first = Int((self.left + atLeft.least).rounded(.down))
        let touched = first..<max(first, Int((self.right - atRight.least).rounded(.up)))
        guard y == Double(row), endY == Double(row + 1) else {
            return (touched, touched.lowerBound..<touched.lowerBound)
        }
        let firstSolid = min(Int((self.left + atLeft.most).rounded(.up)), touched.upperBound)
        return (touched, firstSolid..<max(firstSolid, Int((self.right - atRight.most).rounded(.down))))
    }

    /// Returns how far the edge is from the rectangle's side between two heights.
    private func insets(_ y: Double, _ endY: Double, _ above: Double, _ below: Double) -> (least: Double, most: Double)
    {
        func inset(_ height: Double) -> Double {
            func ofCorner(_ radius: Double, _ distance: Double) -> Double {
                guard distance < radius else { return 0 }
                return radius - max(0, radius * radius - (radius - distance) * (radius - distance)).squareRoot()
            }
            return max(ofCorner(above, height - self.top), ofCorner(below, self.bottom - height))
        }
        let isStraightSomewhere = endY >= self.top + above && y <= self.bottom - below
        return (isStraightSomewhere ? 0 : min(inset(y), inset(endY)), max(inset(y), inset(endY)))
    }
}

/// A part of an image with round corners and a border; transparent outside.
struct ImageFrame {
    private let part: PixelRectangle
    private let outer: RoundedRectangle
    /// The area inside the border.
    private let inner: RoundedRectangle
    private let color: Color

    /// Creates a frame, or returns `nil` if it would neither cut nor draw anything.
    ///
    /// - Throws: `TransformError.Code.invalidParameter` if the border's width is not finite or is negative.
    init?(part: PixelRectangle, radii: RoundCorners.Radii, border: Border?) throws(TransformError) {
        let width = border?.width ?? 0
        guard width.isFinite, width >= 0 else {
            throw .invalidParameter("A border cannot be \(width) pixels wide; give 0 or more.")
        }
        guard width > 0 || radii.all.contains(where: { $0 > 0 }) else { return nil }
        // Limit the radii so that sums are finite; the factor shrinks them to the sides.
        let radii = radii.map { min($0, 1e12) }
        let (columns, rows) = (Double(part.width), Double(part.height))
        let factor = min(
            1,
            columns / max(radii.topLeft + radii.topRight, 1e-9),
            columns / max(radii.bottomLeft + radii.bottomRight, 1e-9),
            rows / max(radii.topLeft + radii.bottomLeft, 1e-9),
            rows / max(radii.topRight + radii.bottomRight, 1e-9)
        )
        self.part = part
        self.outer = RoundedRectangle(left: 0, top: 0, right: columns, bottom: rows, radii: radii.map { $0 * factor })
        self.inner = self.outer.inset(by: min(width, max(columns, rows)))
        self.color = border?.color ?? .clear
    }

    func footprint(for source: PixelLayout) throws(TransformError) -> TransformFootprint {
        let isRound = self.outer.radii.all.contains { $0 > 0 }
        // The image stays visible under a border that is not opaque, so such a border adds no alpha.
        let opaque = Color(red: self.color.red, green: self.color.green, blue: self.color.blue)
        let format = isRound ? .rgba8 : source.format.joined(with: opaque)
        let result = try PixelLayout.result(format, width: self.part.width, height: self.part.height)
        return TransformFootprint(result: result, workingByteCount: format == .rgba8 ? 0 : 4 * self.part.width)
    }

    func paint(_ source: PixelBuffer) throws -> PixelBuffer {
        let layout = try self.footprint(for: source.layout).result
        let (from, to) = (source.layout.planes[0], layout.planes[0])
        let (fromChannels, toChannels) = (source.format.channelCount, layout.format.channelCount)
        var row4 = [UInt8](repeating: 0, count: toChannels == 4 ? 0 : 4 * self.part.width)
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                try source.withUnsafeBytes { bytes in
                    guard let target = target.baseAddress, let bytes = bytes.baseAddress else { return }
                    let first =
                        bytes.assumingMemoryBound(to: UInt8.self)
                        + (from.offset + self.part.y * from.bytesPerRow + self.part.x * fromChannels)
                    for row in 0..<self.part.height {
                        if row % 8 == 0 { try Task.checkCancellation() }
                        let line = (target + row * to.bytesPerRow).assumingMemoryBound(to: UInt8.self)
                        let samples = first + row * from.bytesPerRow
                        guard toChannels < 4 else {
                            cpixels_convert(samples, fromChannels, line, 4, self.part.width)
                            self.paint(row, line)
                            continue
                        }
                        row4.withUnsafeMutableBufferPointer { buffer in
                            guard let pixels = buffer.baseAddress else { return }
                            cpixels_convert(samples, fromChannels, pixels, 4, self.part.width)
                            self.paint(row, pixels)
                            cpixels_convert(pixels, 4, line, toChannels, self.part.width)
                        }
                    }
                }
            }
        )
    }

    /// Cuts and draws one row of RGBA pixels.
    private func paint(_ row: Int, _ pixels: UnsafeMutablePointer<UInt8>) {
        let outer = self.outer.columns(of: row)
        let inner = self.inner.columns(of: row)
        for columns in [0..<outer.touched.lowerBound, outer.touched.upperBound..<self.part.width] {
            (pixels + 4 * columns.lowerBound).update(repeating: 0, count: 4 * columns.count)
        }
        var column = outer.touched.lowerBound
        while column < outer.touched.upperBound {
            if inner.solid.contains(column) {
                column = inner.solid.upperBound
                continue
            }
            guard outer.solid.contains(column), !inner.touched.contains(column) else {
                self.mix(
                    pixels + 4 * column,
                    outer: self.outer.coverage(column, row),
                    inner: self.inner.coverage(column, row)
                )
                column += 1
                continue
            }
            // Only border, until the inside begins or the solid part ends.
            let isBeforeInside = column < inner.touched.lowerBound
            let end = isBeforeInside ? min(inner.touched.lowerBound, outer.solid.upperBound) : outer.solid.upperBound
            if self.color.alpha == 255 {
                let samples = [self.color.red, self.color.green, self.color.blue, 255]
                cpixels_fill(pixels + 4 * column, samples, 4, end - column)
            } else {
                for column in column..<end { self.mix(pixels + 4 * column, outer: 1, inner: 0) }
            }
            column = end
        }
    }

    /// Mixes a pixel at an edge: the image inside the border, the border over the image, and nothing outside.
    private func mix(_ pixel: UnsafeMutablePointer<UInt8>, outer: Double, inner: Double) {
        let alpha = Double(pixel[3]) / 255
        let borderAlpha = Double(self.color.alpha) / 255
        let imageShare = inner + (outer - inner) * (1 - borderAlpha)
        let borderShare = (outer - inner) * borderAlpha
        let resultAlpha = imageShare * alpha + borderShare
        guard resultAlpha * 255 >= 0.5 else {
            pixel.update(repeating: 0, count: 4)
            return
        }
        func mixed(_ sample: UInt8, _ border: UInt8) -> UInt8 {
            let sum = Double(sample) * alpha * imageShare + Double(border) * borderShare
            return UInt8(min(max(sum / resultAlpha, 0), 255).rounded())
        }
        pixel[0] = mixed(pixel[0], self.color.red)
        pixel[1] = mixed(pixel[1], self.color.green)
        pixel[2] = mixed(pixel[2], self.color.blue)
        pixel[3] = UInt8(min(resultAlpha * 255, 255).rounded())
    }
}
