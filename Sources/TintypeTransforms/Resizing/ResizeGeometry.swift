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
    /// What may be read of the source; `nil` where that is all of it.
    package let bounds: Region?

    /// The geometry of `resize` for a source of `width` by `height`, which are at least 1.
    ///
    /// - Throws: `TransformError.Code.invalidSize` when a side of the box is under 1, or one of the box or of the result
    ///   is over `Int32.max`; `TransformError.Code.invalidParameter` when a scale is no number over 0.
    public init(_ resize: Resize, width: Int, height: Int) throws(TransformError) {
        try resize.check()
        let source = (width: Double(width), height: Double(height))
        var part = source
        var target = source
        func limited(_ scale: Double) -> Double { resize.upscales ? scale : min(1, scale) }
        switch resize.size {
        case .box(let boxWidth, let boxHeight):
            let box = (width: Double(boxWidth), height: Double(boxHeight))
            let across = box.width / source.width
            let down = box.height / source.height
            switch resize.mode {
            case .fit:
                let scale = limited(min(across, down))
                target = (source.width * scale, source.height * scale)
            case .fill, .fillDown:
                let covering = max(across, down)
                let scale = resize.mode == .fillDown ? min(1, covering) : limited(covering)
                // What the box covers of the scaled image. Where the image is too small, the
                // largest part with the box's ratio.
                let shrink = min(1, min(source.width * scale / box.width, source.height * scale / box.height))
                target = (box.width * shrink, box.height * shrink)
                part = (min(source.width, target.width / scale), min(source.height, target.height / scale))
            case .cover:
                let scale = limited(max(across, down))
                target = (source.width * scale, source.height * scale)
            case .stretch: target = (source.width * limited(across), source.height * limited(down))
            }
        case .width(let side):
            let scale = limited(Double(side) / source.width)
            target = (source.width * scale, source.height * scale)
        case .height(let side):
            let scale = limited(Double(side) / source.height)
            target = (source.width * scale, source.height * scale)
        case .scale(let factor):
            let scale = limited(factor)
            target = (source.width * scale, source.height * scale)
        }
        guard width > 0, height > 0, max(target.width, target.height) < Double(Int32.max) + 0.5 else {
            throw .invalidSize(
                "A picture of \(width)x\(height) can't be resized by \(resize.key): a side would be under 1 "
                    + "or over \(Int32.max) pixels. Ask for a smaller size."
            )
        }
        self.init(
            left: resize.gravity.start(of: part.width, in: source.width, along: .horizontal),
            top: resize.gravity.start(of: part.height, in: source.height, along: .vertical),
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

    package init(
        left: Double,
        top: Double,
        sourceWidth: Double,
        sourceHeight: Double,
        width: Int,
        height: Int,
        bounds: Region? = nil
    ) {
        self.bounds = bounds
        self.left = left
        self.top = top
        self.sourceWidth = sourceWidth
        self.sourceHeight = sourceHeight
        self.width = width
        self.height = height
    }

    /// The same part of a source that was scaled before.
    public func scaled(byWidth horizontal: Double, height vertical: Double) -> ResizeGeometry {
        ResizeGeometry(
            left: self.left * horizontal,
            top: self.top * vertical,
            sourceWidth: self.sourceWidth * horizontal,
            sourceHeight: self.sourceHeight * vertical,
            width: self.width,
            height: self.height,
            bounds: self.bounds?.scaled(byWidth: horizontal, height: vertical)
        )
    }

    /// The columns of `count` that may be read.
    func boundedColumns(of count: Int) -> Range<Int> {
        Self.samples(from: self.bounds?.left, self.bounds?.width, of: count)
    }

    /// The rows of `count` that may be read.
    func boundedRows(of count: Int) -> Range<Int> {
        Self.samples(from: self.bounds?.top, self.bounds?.height, of: count)
    }

    /// The samples that a part touches; a little beside it is rounding.
    private static func samples(from start: Double?, _ length: Double?, of count: Int) -> Range<Int> {
        guard let start, let length else { return 0..<count }
        let first = min(max(0, Int((start + 1e-6).rounded(.down))), count - 1)
        return first..<max(first + 1, min(count, Int((start + length - 1e-6).rounded(.up))))
    }

    /// The part of a source of `width` by `height` that is only copied; `nil` where pixels are made of others.
    func copiedPart(width: Int, height: Int) -> PixelRectangle? {
        guard self.sourceWidth == Double(self.width), self.sourceHeight == Double(self.height),
            self.left == self.left.rounded(), self.top == self.top.rounded(), self.left >= 0, self.top >= 0,
            self.left + self.sourceWidth <= Double(width), self.top + self.sourceHeight <= Double(height)
        else { return nil }
        return PixelRectangle(x: Int(self.left), y: Int(self.top), width: self.width, height: self.height)
    }

    /// Whether nothing is left to do for a source of `width` by `height`.
    func isIdentity(width: Int, height: Int) -> Bool {
        self.left == 0 && self.top == 0 && self.sourceWidth == Double(width) && self.sourceHeight == Double(height)
            && self.width == width && self.height == height
    }

    /// The bytes that resampling takes besides source and target, at most.
    ///
    /// - Parameters:
    ///   - width: The width of the source.
    ///   - height: Its height.
    ///   - format: Its samples.
    ///   - resampling: The kernel and the light.
    ///   - isStreamed: Whether the rows come one by one, and are not there whole.
    /// - Returns: The bytes.
    package func byteCount(
        width: Int,
        height: Int,
        format: PixelFormat,
        resampling: Resampling,
        isStreamed: Bool = false
    ) -> Int {
        RowResampler.byteCount(
            self,
            of: (width, height, format),
            resampling,
            isStreamed: isStreamed
        )
    }
}
