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

    /// The same region of an image that was scaled.
    func scaled(byWidth horizontal: Double, height vertical: Double) -> Region {
        Region(
            left: self.left * horizontal,
            top: self.top * vertical,
            width: self.width * horizontal,
            height: self.height * vertical
        )
    }

    /// Where the region lies before the turn `orientation`, of an image that is `width` by `height` after it.
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

/// What a run of crops, one resize and quarter turns make of an image of one size, as a single step: a part of it is
/// read, brought to a size, and turned.
package struct TransformGeometry: Sendable, Hashable {
    /// The part of the image that becomes the result.
    package private(set) var region: Region
    /// What may be read: beyond a crop that comes before the resize there are no pixels.
    package private(set) var bounds: Region
    /// The size of the result before it is turned.
    package private(set) var size: PixelSize
    /// How the result is turned.
    package private(set) var turn = Orientation.up
    /// The resize in the run; `nil` as long as pixels stay what they are.
    package private(set) var resize: Resize?
    /// The size of the image.
    package let source: PixelSize

    /// The whole of an image.
    package init(of source: PixelSize) {
        self.source = source
        self.size = source
        self.region = Region(left: 0, top: 0, width: Double(source.width), height: Double(source.height))
        self.bounds = self.region
    }

    /// The size of the result.
    package var turnedSize: PixelSize {
        let size = self.turn.uprightSize(width: self.size.width, height: self.size.height)
        return PixelSize(width: size.width, height: size.height)
    }

    /// Whether the result is the image itself.
    package var isIdentity: Bool { self.turn == .up && self.isWhole }

    /// Whether nothing is cut or resampled.
    package var isWhole: Bool {
        self.size == self.source && self.bounds == Self(of: self.source).bounds && self.region == self.bounds
    }

    /// Cuts the result down to a rectangle of it.
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

    /// Brings the result to a size.
    ///
    /// - Returns: `false` where it was resized before: what is resampled twice can't be done in one step.
    /// - Throws: `TransformError.Code.invalidSize`.
    package mutating func resize(_ resize: Resize) throws(TransformError) -> Bool {
        guard self.resize == nil else { return false }
        let turned = self.turnedSize
        let geometry = try ResizeGeometry(resize, width: turned.width, height: turned.height)
        self.resize(geometry, resize)
        return true
    }

    /// Brings the result to a size, as `geometry` says of the image as it is turned now.
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

    /// What is to be done with the image as it is stored, where `orientation` turns it upright, so that the same comes of it.
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

    /// The part of the source that a part of the result, not turned, is made of.
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

/// A transform that only says which part of an image is read, at what size, and how it is turned.
///
/// Runs of these are one step, and those at the start of a pipeline are a part of the decode.
package protocol GeometricTransformer: ImageTransformer {
    /// Adds what the transform does; `false` where that can't be a part of the same step.
    ///
    /// - Throws: `TransformError` where the parameters make no sense, or not for such an image.
    func add(to geometry: inout TransformGeometry) throws(TransformError) -> Bool
}

extension TransformGeometry {
    /// The part that is read and the size that it is brought to; `nil` where the whole is read as it is.
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

    /// The kernel, and the light in which it weighs.
    package var resampling: Resampling { self.resize?.resampling ?? Resampling() }

    /// What it makes of an image that lies like `source`, and the bytes that it takes.
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
        // The image before it is turned lies otherwise, and takes about as much.
        let stored = try PixelLayout(format: source.format, width: self.size.width, height: self.size.height)
        return TransformFootprint(
            result: result,
            workingByteCount: self.turn == .up ? resampling : max(resampling, stored.byteCount)
        )
    }

    /// Carries it out.
    package func transform(_ image: Image) throws -> Image {
        var image = image
        if let resizing { image = try image.resized(resizing, self.resampling) }
        return try image.turned(self.turn)
    }
}
