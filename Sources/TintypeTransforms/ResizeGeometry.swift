/// The part of a source that a resize reads and the size that it writes.
public struct ResizeGeometry: Sendable, Hashable {
    /// The left edge of the part that is read, in source pixels.
    public let left: Double
    /// The top edge of the part that is read, in source pixels.
    public let top: Double
    /// The width of the part that is read, in source pixels.
    public let sourceWidth: Double
    /// The height of the part that is read, in source pixels.
    public let sourceHeight: Double
    /// The width that is written, in pixels.
    public let width: Int
    /// The height that is written, in pixels.
    public let height: Int

    /// The geometry of `resize` for a source of `width` by `height`, which are at least 1.
    ///
    /// - Throws: `TransformError.Code.invalidSize` when a side of the box is under 1 or over `Int32.max`.
    public init(_ resize: Resize, width: Int, height: Int) throws(TransformError) {
        let sides = 1...Int(Int32.max)
        guard sides.contains(resize.width), sides.contains(resize.height), width > 0, height > 0 else {
            throw TransformError(
                code: .invalidSize,
                message: "A picture can't be resized to \(resize.width)x\(resize.height); "
                    + "give sides of 1 to \(sides.upperBound) pixels."
            )
        }
        let source = (width: Double(width), height: Double(height))
        let box = (width: Double(resize.width), height: Double(resize.height))
        var part = source
        var target = source
        switch resize.mode {
        case .fit:
            let scale = Self.limited(min(box.width / source.width, box.height / source.height), resize)
            target = (source.width * scale, source.height * scale)
        case .fill:
            let scale = Self.limited(max(box.width / source.width, box.height / source.height), resize)
            // What the box covers of the scaled picture. Where the picture is too small, the
            // largest part with the box's ratio.
            let shrink = min(1, min(source.width * scale / box.width, source.height * scale / box.height))
            target = (box.width * shrink, box.height * shrink)
            part = (min(source.width, target.width / scale), min(source.height, target.height / scale))
        case .stretch:
            target = (
                source.width * Self.limited(box.width / source.width, resize),
                source.height * Self.limited(box.height / source.height, resize)
            )
        }
        self.init(
            left: (source.width - part.width) / 2,
            top: (source.height - part.height) / 2,
            sourceWidth: part.width,
            sourceHeight: part.height,
            width: max(1, Int(target.width.rounded())),
            height: max(1, Int(target.height.rounded()))
        )
    }

    /// The geometry that brings a source of `width` by `height` within a limit of pixel bytes, four
    /// for each; `nil` when it is within.
    ///
    /// The side factor is the square root of the area ratio, so that a limit of 60 MiB gives 60 MiB.
    public init?(pixelByteLimit: Int, width: Int, height: Int) {
        let pixelLimit = Double(max(4, pixelByteLimit) / 4)
        let factor = (pixelLimit / (Double(width) * Double(height))).squareRoot()
        guard width > 0, height > 0, factor < 1 else { return nil }
        self.init(
            left: 0,
            top: 0,
            sourceWidth: Double(width),
            sourceHeight: Double(height),
            width: max(1, Int((Double(width) * factor).rounded(.down))),
            height: max(1, Int((Double(height) * factor).rounded(.down)))
        )
    }

    private init(left: Double, top: Double, sourceWidth: Double, sourceHeight: Double, width: Int, height: Int) {
        self.left = left
        self.top = top
        self.sourceWidth = sourceWidth
        self.sourceHeight = sourceHeight
        self.width = width
        self.height = height
    }

    private static func limited(_ scale: Double, _ resize: Resize) -> Double {
        resize.upscales ? scale : min(1, scale)
    }

    /// The same part and size with the axes exchanged, for sources that are stored on their side.
    public var transposed: ResizeGeometry {
        ResizeGeometry(
            left: self.top,
            top: self.left,
            sourceWidth: self.sourceHeight,
            sourceHeight: self.sourceWidth,
            width: self.height,
            height: self.width
        )
    }

    /// The same part of a source that was scaled before.
    public func scaled(byWidth horizontal: Double, height vertical: Double) -> ResizeGeometry {
        ResizeGeometry(
            left: self.left * horizontal,
            top: self.top * vertical,
            sourceWidth: self.sourceWidth * horizontal,
            sourceHeight: self.sourceHeight * vertical,
            width: self.width,
            height: self.height
        )
    }

    /// Whether nothing is left to do for a source of `width` by `height`.
    func isIdentity(width: Int, height: Int) -> Bool {
        self.left == 0 && self.top == 0 && self.sourceWidth == Double(width) && self.sourceHeight == Double(height)
            && self.width == width && self.height == height
    }
}
