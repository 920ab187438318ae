// SPDX-License-Identifier: Apache-2.0

package import TintypeImage

/// The part of a source that a resize reads, and the size of the result.
public struct ResizeGeometry: Sendable, Hashable {
    /// The left edge of the part, in source pixels.
    public let left: Double
    /// The top edge of the part, in source pixels.
    public let top: Double
    /// The width of the part, in source pixels.
    public let sourceWidth: Double
    /// The height of the part, in source pixels.
    public let sourceHeight: Double
    /// The width of the result, in pixels.
    public let width: Int
    /// The height of the result, in pixels.
    public let height: Int
    /// The region of the source that may be read; `nil` if all of it may be.
    package let bounds: Region?

    /// Creates the geometry of `resize` for a source of `width` by `height` pixels, each at least 1.
    ///
    /// ```swift
    /// let geometry = try ResizeGeometry(.fill(width: 800, height: 600), width: 1_600, height: 900)
    /// print(geometry.left, geometry.sourceWidth, geometry.width)  // 200.0 1200.0 800
    /// ```
    ///
    /// - Throws: `TransformError.Code.invalidSize` if a side of the box is under 1, or a side of the box or of the
    ///   result is over `Int32.max`; `TransformError.Code.invalidParameter` if a scale is not finite and over 0.
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
                // The part of the scaled image within the box; if the image is too small, its largest part with the
                // box's ratio.
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
                "An image of \(width)x\(height) cannot be resized by \(resize.key): a side would be under 1 "
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

    /// Creates the geometry that shrinks a source to a limit of pixel bytes, or returns `nil` if it is within the
    /// limit.
    ///
    /// A pixel counts four bytes. The factor for each side is the square root of the area ratio, so that the result is
    /// just within the limit.
    ///
    /// ```swift
    /// let geometry = ResizeGeometry(pixelByteLimit: 16 << 20, width: 6_000, height: 4_000)
    /// ```
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

    /// Returns the geometry of the same part in a scaled source.
    ///
    /// ```swift
    /// let geometry = try ResizeGeometry(.fill(width: 800, height: 600), width: 1_600, height: 900)
    /// let half = geometry.scaled(byWidth: 0.5, height: 0.5)
    /// ```
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

    /// Returns the columns out of `count` that may be read.
    func boundedColumns(of count: Int) -> Range<Int> {
        Self.samples(from: self.bounds?.left, self.bounds?.width, of: count)
    }

    /// Returns the rows out of `count` that may be read.
    func boundedRows(of count: Int) -> Range<Int> {
        Self.samples(from: self.bounds?.top, self.bounds?.height, of: count)
    }

    /// Returns the samples that a region touches, with a tolerance for rounding errors.
    private static func samples(from start: Double?, _ length: Double?, of count: Int) -> Range<Int> {
        guard let start, let length else { return 0..<count }
        let first = min(max(0, Int((start + 1e-6).rounded(.down))), count - 1)
        return first..<max(first + 1, min(count, Int((start + length - 1e-6).rounded(.up))))
    }

    /// Returns the part of a source that is copied unchanged, or `nil` if pixels are resampled.
    func copiedPart(width: Int, height: Int) -> PixelRectangle? {
        guard self.sourceWidth == Double(self.width), self.sourceHeight == Double(self.height),
            self.left == self.left.rounded(), self.top == self.top.rounded(), self.left >= 0, self.top >= 0,
            self.left + self.sourceWidth <= Double(width), self.top + self.sourceHeight <= Double(height)
        else { return nil }
        return PixelRectangle(x: Int(self.left), y: Int(self.top), width: self.width, height: self.height)
    }

    /// Returns whether the geometry changes nothing in a source of `width` by `height`.
    func isIdentity(width: Int, height: Int) -> Bool {
        self.left == 0 && self.top == 0 && self.sourceWidth == Double(width) && self.sourceHeight == Double(height)
            && self.width == width && self.height == height
    }

    /// Returns the most bytes that resampling needs in addition to source and target.
    ///
    /// - Parameters:
    ///   - width: The width of the source, in pixels.
    ///   - height: The height of the source, in pixels.
    ///   - format: The pixel format of the source.
    ///   - resampling: The filter kernel and the light space.
    ///   - isStreamed: Whether the rows come one by one, instead of from a whole image.
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
