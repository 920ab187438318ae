package import TintypeImage

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

    package init(left: Double, top: Double, sourceWidth: Double, sourceHeight: Double, width: Int, height: Int) {
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

    /// What zimg may take: for more a picture is resampled row by row, also where it is there whole.
    private static let zimgByteLimit = 32 << 20

    /// The bytes that resampling takes besides source and target, at most about.
    ///
    /// - Parameters:
    ///   - width: The width of the source.
    ///   - height: Its height.
    ///   - format: Its samples.
    /// - Returns: The bytes.
    package func byteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        guard self.isResampledByRows(width: width, height: height, format: format) else {
            return self.zimgByteCount(width: width, height: height, format: format)
        }
        return Self.stripByteCount(width: width, height: height, format: format)
    }

    /// Whether a picture that is there whole is resampled row by row, because zimg would take much memory: very wide
    /// ones that shrink to little.
    func isResampledByRows(width: Int, height: Int, format: PixelFormat) -> Bool {
        // Where the picture grows, a source row counts for any number of target rows.
        guard self.sourceHeight >= Double(self.height), self.sourceWidth >= Double(self.width) else { return false }
        return self.zimgByteCount(width: width, height: height, format: format) > Self.zimgByteLimit
    }

    /// The rows of the source that the widest kernel reads, as numbers, and more of them where alpha is multiplied in.
    private func zimgByteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        let across = self.sourceWidth / Double(max(1, self.width))
        let down = self.sourceHeight / Double(max(1, self.height))
        let shrink = max(1, across, down)
        // Measured with zimg 3.0: the rows of a kernel of six are rounded up to a power of two.
        let needed = min(6 * shrink, Double(max(8, height)))
        let rows = Double(1 << (Int.bitWidth - (Int(needed.rounded(.up)) - 1).leadingZeroBitCount))
        let samples = Double(max(width, self.width)) * Double(format.channelCount)
        return Int(min(samples * (300 + rows * (format.hasAlpha ? 16 : 7)), Double(Int.max / 2)))
    }

    /// The bytes that resampling rows as they come takes besides the target: the target rows that a source row counts
    /// for, as numbers, and the weights of all columns and rows.
    package static func stripByteCount(width: Int, height: Int, format: PixelFormat) -> Int {
        let row = Double(width) * Double(format.channelCount) * 4
        return Int(min(row * 10 + (Double(width) + Double(height)) * 24, Double(Int.max / 2)))
    }
}
