// SPDX-License-Identifier: Apache-2.0

package import TintypeImage

/// A rectangle with fractions of pixels.
package struct Region: Sendable, Hashable {
    package var left: Double
    package var top: Double
    package var width: Double
    package var height: Double

    package init(left: Double, top: Double, width: Double, height: Double) {
        self.left = left
        self.top = top
        self.width = width
        self.height = height
    }

    /// Returns the same region of a scaled image.
    func scaled(byWidth horizontal: Double, height vertical: Double) -> Region {
        Region(
            left: self.left * horizontal,
            top: self.top * vertical,
            width: self.width * horizontal,
            height: self.height * vertical
        )
    }

    /// Returns the region before the turn `orientation`, if the image is `width` by `height` after it.
    package func undoing(_ orientation: Orientation, width: Double, height: Double) -> Region {
        let right = width - self.left - self.width
        let bottom = height - self.top - self.height
        let (left, top) =
            switch orientation {
            case .up: (self.left, self.top)
            case .upMirrored: (right, self.top)
            case .down: (right, bottom)
            case .downMirrored: (self.left, bottom)
            case .leftMirrored: (self.top, self.left)
            case .right: (self.top, right)
            case .rightMirrored: (bottom, right)
            case .left: (bottom, self.left)
            }
        let isSwapped = orientation.swapsSides
        return Region(
            left: left,
            top: top,
            width: isSwapped ? self.height : self.width,
            height: isSwapped ? self.width : self.height
        )
    }
}

/// The combined effect of crops, one resize and quarter turns on an image of a given size.
///
/// It is a single step: read a part, scale it, and turn it.
package struct TransformGeometry: Sendable, Hashable {
    /// The part of the image that becomes the result.
    package private(set) var region: Region
    /// The region that may be read; a crop before the resize limits it.
    package private(set) var bounds: Region
    /// The size of the result before the turn.
    package private(set) var size: PixelSize
    /// The turn of the result.
    package private(set) var turn = Orientation.up
    /// The resize in the run, or `nil` without one.
    package private(set) var resize: Resize?
    /// The size of the image.
    package let source: PixelSize

    /// Creates the geometry that keeps the whole image.
    package init(of source: PixelSize) {
        self.source = source
        self.size = source
        self.region = Region(left: 0, top: 0, width: Double(source.width), height: Double(source.height))
        self.bounds = self.region
    }

    /// The size of the result after the turn.
    package var turnedSize: PixelSize {
        let size = self.turn.uprightSize(width: self.size.width, height: self.size.height)
        return PixelSize(width: size.width, height: size.height)
    }

    /// Whether the result is the image itself.
    package var isIdentity: Bool { self.turn == .up && self.isWhole }

    /// Whether the whole image is read as it is, without a cut or a resize.
    package var isWhole: Bool {
        self.size == self.source && self.bounds == Self(of: self.source).bounds && self.region == self.bounds
    }

    /// Crops the result to a rectangle in it.
    package mutating func crop(to part: PixelRectangle) {
        let rectangle = Region(
            left: Double(part.x),
            top: Double(part.y),
            width: Double(part.width),
            height: Double(part.height)
        )
        let turned = self.turnedSize
        let stored = rectangle.undoing(self.turn, width: Double(turned.width), height: Double(turned.height))
        self.region = self.region(of: stored)
        self.size = PixelSize(width: Int(stored.width), height: Int(stored.height))
        if self.resize == nil { self.bounds = self.region }
    }

    /// Resizes the result.
    ///
    /// - Returns: `false` if there is a resize already: resampling twice needs two steps.
    /// - Throws: `TransformError`.
    package mutating func resize(_ resize: Resize) throws(TransformError) -> Bool {
        guard self.resize == nil else { return false }
        let turned = self.turnedSize
        let geometry = try ResizeGeometry(resize, width: turned.width, height: turned.height)
        self.resize(geometry, resize)
        return true
    }

    /// Resizes the result by a geometry for the image in its current turn.
    package mutating func resize(_ geometry: ResizeGeometry, _ resize: Resize) {
        let turned = self.turnedSize
        let stored = Region(
            left: geometry.left,
            top: geometry.top,
            width: geometry.sourceWidth,
            height: geometry.sourceHeight
        ).undoing(self.turn, width: Double(turned.width), height: Double(turned.height))
        self.region = self.region(of: stored)
        let size = self.turn.inverse.uprightSize(width: geometry.width, height: geometry.height)
        self.size = PixelSize(width: size.width, height: size.height)
        self.resize = resize
    }

    /// Returns the geometry for the stored image that `orientation` turns upright; its result is the same.
    package func beforeTurn(_ orientation: Orientation) -> TransformGeometry {
        let undone = orientation.inverse
        let (width, height) = (Double(self.source.width), Double(self.source.height))
        let stored = undone.uprightSize(width: self.source.width, height: self.source.height)
        let size = undone.uprightSize(width: self.size.width, height: self.size.height)
        var result = TransformGeometry(of: PixelSize(width: stored.width, height: stored.height))
        result.region = self.region.undoing(orientation, width: width, height: height)
        result.bounds = self.bounds.undoing(orientation, width: width, height: height)
        result.size = PixelSize(width: size.width, height: size.height)
        result.turn = orientation.followed(by: self.turn)
        result.resize = self.resize
        return result
    }

    /// Turns the result.
    package mutating func turn(_ orientation: Orientation) {
        self.turn = self.turn.followed(by: orientation)
    }

    /// Returns the part of the source that a part of the result, before the turn, comes from.
    private func region(of part: Region) -> Region {
        let across = self.region.width / Double(self.size.width)
        let down = self.region.height / Double(self.size.height)
        return Region(
            left: self.region.left + part.left * across,
            top: self.region.top + part.top * down,
            width: part.width * across,
            height: part.height * down
        )
    }
}

/// A transform that only selects a part of an image, scales it and turns it.
///
/// Consecutive geometric transforms run as one step. At the start of a pipeline that step is a part of the decode.
package protocol GeometricTransformer: ImageTransformer {
    /// Adds the transform to `geometry`; returns `false` if it needs a step of its own.
    ///
    /// - Throws: `TransformError` if a parameter is invalid, or invalid for such an image.
    func add(to geometry: inout TransformGeometry) throws(TransformError) -> Bool
}

extension TransformGeometry {
    /// The part to read and the size to scale it to; `nil` if the whole image is read as it is.
    package var resizing: ResizeGeometry? {
        guard !self.isWhole else { return nil }
        return ResizeGeometry(
            left: self.region.left,
            top: self.region.top,
            sourceWidth: self.region.width,
            sourceHeight: self.region.height,
            width: self.size.width,
            height: self.size.height,
            bounds: self.bounds == Self(of: self.source).bounds ? nil : self.bounds
        )
    }

    /// The filter kernel and the light space of the resize.
    package var resampling: Resampling { self.resize?.resampling ?? Resampling() }

    /// Returns the layout of the result for an image of the layout `source`, and the bytes that the step needs.
    package func footprint(for source: PixelLayout) throws -> TransformFootprint {
        let size = self.turnedSize
        let result = try PixelLayout(format: source.format, width: size.width, height: size.height)
        guard let resizing else { return TransformFootprint(result: result) }
        let isCopied = resizing.copiedPart(width: source.width, height: source.height) != nil
        let resampling =
            isCopied
            ? 0
            : resizing.byteCount(
                width: source.width,
                height: source.height,
                format: source.format,
                resampling: self.resampling
            )
        // Before the turn the image has another layout, of about the same size.
        let stored = try PixelLayout(format: source.format, width: self.size.width, height: self.size.height)
        return TransformFootprint(
            result: result,
            workingByteCount: self.turn == .up ? resampling : max(resampling, stored.byteCount)
        )
    }

    /// Runs the step.
    package func transform(_ image: Image) throws -> Image {
        var image = image
        if let resizing { image = try image.resized(resizing, self.resampling) }
        return try image.turned(self.turn)
    }
}
