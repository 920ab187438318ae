// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
import CTintypePixelKernels
public import TintypeImage

/// Draws an overlay, such as a watermark, on a base image: once, or as tiles that cover it.
///
/// The base image keeps its size, and its borders cut the overlay off. It gets colours or alpha if the overlay has
/// them.
public struct Overlay: ImageTransformer {
    /// The placement of the overlay on the base image.
    public enum Placement: Sendable, Hashable {
        /// Draws the overlay once.
        ///
        /// Positive offsets move it away from the border that gravity names, and otherwise to the right and down.
        case single(Gravity, offsetX: Double = 0, offsetY: Double = 0)
        /// Repeats the overlay in both directions over the whole base image, with gaps; gravity places one of the
        /// tiles.
        case tiled(Gravity = .northWest, gapX: Double = 0, gapY: Double = 0)
    }

    /// The unit of offsets and gaps.
    public enum Unit: String, Sendable, Hashable, Codable, CaseIterable {
        /// Pixels.
        case pixels
        /// Shares of the base image's width and height.
        case shares
    }

    /// The image of the overlay.
    public let image: Image
    /// The text that names the overlay in a description.
    public let source: String
    /// The text that identifies the overlay in keys.
    private let identity: String
    /// The placement on the base image.
    public var placement: Placement
    /// The unit of offsets and gaps.
    public var unit: Unit
    /// The largest share of the base image's width and height that the overlay fills, 0.0001 to 1.
    ///
    /// The overlay keeps its ratio and is resized with Lanczos. `nil`, the default, draws it at its own size.
    public var scale: Double?
    /// From 0, invisible, to 1, unchanged.
    public var opacity: Double
    /// How the overlay is combined with the base image.
    public var mode: BlendMode

    /// Creates an overlay.
    ///
    /// ```swift
    /// let logo = try await loader.image(for: url)
    /// let placement = Overlay.Placement.single(.southEast, offsetX: 16, offsetY: 16)
    /// let overlay = Overlay(logo, name: "logo", placement: placement, opacity: 0.5)
    /// request.transforms = [.overlay(overlay)]
    /// ```
    ///
    /// - Parameters:
    ///   - image: The overlay, upright and in sRGB.
    ///   - name: The name in keys and descriptions. Different overlays must have different names, because results are
    ///     stored under them. By default, a digest of the size and of all pixels.
    ///   - placement: The placement on the base image; by default once, in the middle.
    ///   - unit: The unit of offsets and gaps.
    ///   - scale: The share of the base image's sides that the overlay fills; `nil` draws it at its own size.
    ///   - opacity: From 0 to 1.
    ///   - mode: How the overlay is combined with the base image.
    public init(
        _ image: Image,
        name: String? = nil,
        placement: Placement = .single(.center),
        unit: Unit = .pixels,
        scale: Double? = nil,
        opacity: Double = 1,
        mode: BlendMode = .sourceOver
    ) {
        let identity = name ?? Self.digest(of: image.pixels)
        self.init(image, identity: identity, source: identity, placement, unit, scale, opacity, mode)
    }

    private init(
        _ image: Image,
        identity: String,
        source: String,
        _ placement: Placement,
        _ unit: Unit,
        _ scale: Double?,
        _ opacity: Double,
        _ mode: BlendMode
    ) {
        self.image = image
        self.identity = identity
        self.source = source
        self.placement = placement
        self.unit = unit
        self.scale = scale
        self.opacity = opacity
        self.mode = mode
    }

    private static func digest(of pixels: PixelBuffer) -> String {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        pixels.withUnsafeBytes { bytes in
            _ = SHA256(bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, &digest)
        }
        let digits = digest.prefix(16).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return "\(pixels.width)x\(pixels.height)-\(pixels.format)-\(digits.joined())"
    }

    public var key: String {
        var parts = [String(reflecting: self.identity)]
        switch self.placement {
        case .single(let gravity, let x, let y): parts += ["\(gravity)", "\(x)", "\(y)"]
        case .tiled(let gravity, let x, let y): parts += ["tiled", "\(gravity)", "\(x)", "\(y)"]
        }
        parts += [self.unit.rawValue, self.scale.map { "\($0)" } ?? "-", "\(self.opacity)", self.mode.rawValue]
        return "overlay(\(parts.joined(separator: ",")))"
    }

    // MARK: - Drawing

    /// Returns the resize that scales the overlay for a base image, or `nil` if it is drawn at its own size.
    private func resize(width: Int, height: Int) -> Resize? {
        guard let scale = self.scale else { return nil }
        func side(_ length: Int) -> Double { max(1, Double(length) * scale) }
        let factor = min(side(width) / Double(self.image.width), side(height) / Double(self.image.height))
        func scaled(_ length: Int) -> Int { max(1, Int(min((Double(length) * factor).rounded(), 1e9))) }
        return .stretch(width: scaled(self.image.width), height: scaled(self.image.height), upscales: true)
    }

    /// - Throws: `TransformError` if a parameter is invalid.
    private func check() throws(TransformError) {
        try TransformError.check(self.opacity, in: 0...1, "The opacity of an overlay")
        if let scale = self.scale { try TransformError.check(scale, in: 0.000_1...1, "The scale of an overlay") }
        switch self.placement {
        case .single(_, let x, let y):
            for offset in [x, y] { try TransformError.check(offset, in: -1e9...1e9, "The offset of an overlay") }
        case .tiled(_, let x, let y):
            for gap in [x, y] { try TransformError.check(gap, in: 0...1e9, "The gap of an overlay") }
        }
    }

    /// Whether the overlay neither draws nor erases anything.
    private var isInvisible: Bool { self.opacity == 0 && self.mode != .sourceIn }

    /// Returns the pixel format of a base image after the overlay is drawn on it.
    private func result(for format: PixelFormat) -> PixelFormat {
        let isOpaque = !self.image.hasAlpha && self.opacity == 1
        if format.hasAlpha || (self.mode == .sourceIn && !isOpaque) { return .rgba8 }
        return format == .gray8 && self.image.pixels.format == .gray8 ? .gray8 : .rgb8
    }

    public func footprint(for source: PixelLayout) throws -> TransformFootprint {
        try self.check()
        guard !self.isInvisible else { return TransformFootprint(result: source) }
        let format = self.result(for: source.format)
        let layout = try PixelLayout(format: format, width: source.width, height: source.height)
        var working = OverlayDrawing.workingByteCount
        var drawnLayout = self.image.pixels.layout
        if let resize = self.resize(width: source.width, height: source.height) {
            let drawn = self.image.pixels
            let geometry = try ResizeGeometry(resize, width: drawn.width, height: drawn.height)
            drawnLayout = try PixelLayout(format: drawn.format, width: geometry.width, height: geometry.height)
            working += drawnLayout.byteCount
            working += geometry.byteCount(
                width: drawn.width,
                height: drawn.height,
                format: drawn.format,
                resampling: resize.resampling
            )
        }
        if case .tiled = self.placement { working += OverlayDrawing.repeatedByteCount(drawnLayout) }
        return TransformFootprint(result: layout, workingByteCount: working)
    }

    public func transform(_ image: Image) throws -> Image {
        try self.check()
        guard !self.isInvisible else { return image }
        let drawn = try self.resize(width: image.width, height: image.height).map { try self.image.resized($0) }
        let drawing = try OverlayDrawing(
            self,
            (drawn ?? self.image).pixels,
            width: image.width,
            height: image.height
        )
        guard drawing.isSeen else { return image }
        return try image.filtered(to: self.result(for: image.pixels.format)) { rows in
            try drawing.run(rows, from: image.pixels.format, to: self.result(for: image.pixels.format))
        }
    }
}

/// Draws a scaled overlay on the rows of a base image.
private struct OverlayDrawing {
    /// The number of pixels worked on at once; their planes stay in the nearest cache.
    private static let tileWidth = 512
    /// Tiles are joined up to this width, in pixels.
    private static let narrowWidth = 256
    /// The bytes of the planes of overlay and base image.
    static let workingByteCount = 2 * 4 * tileWidth * MemoryLayout<Float>.stride

    private let drawn: PixelBuffer
    private let composition: Composition
    private let opacity: Double
    private let width: Int
    private let height: Int
    /// The place of the first overlay, which may be outside the base image.
    private let left: Int
    private let top: Int
    private let step: (x: Int, y: Int)?

    init(_ overlay: Overlay, _ drawn: PixelBuffer, width: Int, height: Int) throws {
        self.composition = .drawing(overlay.mode)
        self.opacity = overlay.opacity
        self.width = width
        self.height = height
        func pixels(_ value: Double, of total: Int) -> Int {
            // Limit the distance; an overlay this far away is invisible too.
            Int(min(max((overlay.unit == .pixels ? value : value * Double(total)).rounded(), -4e9), 4e9))
        }
        func start(_ share: Double, _ length: Int, _ total: Int, offset: Int) -> Int {
            // From the right and the bottom border, positive offsets move the overlay inwards.
            Int((share * Double(total - length)).rounded()) + (share > 0.5 ? -offset : offset)
        }
        switch overlay.placement {
        case .single(let gravity, let x, let y):
            self.drawn = drawn
            self.left = start(gravity.x, drawn.width, width, offset: pixels(x, of: width))
            self.top = start(gravity.y, drawn.height, height, offset: pixels(y, of: height))
            self.step = nil
        case .tiled(let gravity, let x, let y):
            self.left = start(gravity.x, drawn.width, width, offset: 0)
            self.top = start(gravity.y, drawn.height, height, offset: 0)
            let gap = pixels(x, of: width)
            // Drawing a span has a fixed cost, so join narrow tiles that have no gaps.
            let count = gap == 0 ? Self.repetitions(ofWidth: drawn.width, within: width) : 1
            self.drawn = count > 1 ? try drawn.repeated(count) : drawn
            self.step = (self.drawn.width + gap, drawn.height + pixels(y, of: height))
        }
    }

    /// Returns how many tiles without gaps to join along a row.
    private static func repetitions(ofWidth width: Int, within total: Int) -> Int {
        max(1, min(Self.narrowWidth, total) / width)
    }

    /// Returns the most bytes of joined tiles: with alpha, and as high as the overlay.
    static func repeatedByteCount(_ drawn: PixelLayout) -> Int {
        drawn.width < Self.narrowWidth ? 4 * Self.narrowWidth * drawn.height : 0
    }

    /// Whether a part of the overlay lies on the base image.
    var isSeen: Bool {
        (0..<self.width).overlaps(self.left..<self.left + self.drawn.width)
            && (0..<self.height).overlaps(self.top..<self.top + self.drawn.height)
    }

    /// Returns the row of the overlay that lies on a row of the base image.
    private func drawnRow(_ row: Int) -> Int? {
        let distance = row - self.top
        let place = self.step.map { Self.remainder(distance, $0.y) } ?? distance
        return (0..<self.drawn.height).contains(place) ? place : nil
    }

    /// The columns that the overlay covers in each row that it touches, from the left; they may reach over the borders.
    private var covered: [Range<Int>] {
        let length = self.drawn.width
        let starts =
            if let step = self.step {
                Array(stride(from: Self.remainder(self.left, step.x) - step.x, to: self.width, by: step.x))
            } else {
                [self.left]
            }
        return starts.filter { (0..<self.width).overlaps($0..<$0 + length) }.map { $0..<$0 + length }
    }

    private static func remainder(_ value: Int, _ divisor: Int) -> Int {
        let rest = value % divisor
        return rest < 0 ? rest + divisor : rest
    }

    /// Writes all rows of the result.
    func run(_ rows: StoredRows, from format: PixelFormat, to result: PixelFormat) throws {
        let memory = try AlignedMemory(byteCount: Self.workingByteCount)
        let planes = memory.start.bindMemory(to: Float.self, capacity: 8 * Self.tileWidth)
        let covered = self.covered
        for row in 0..<self.height {
            if row % 16 == 0 { try Task.checkCancellation() }
            let target = rows.target(row, 0)
            if format == result {
                target.update(from: rows.source(row, 0), count: self.width * format.channelCount)
            } else {
                self.forEachTile(0..<self.width) { columns in
                    let source = rows.source(row, columns.lowerBound)
                    cpixels_to_planes(source, format.channelCount, planes, Self.tileWidth, columns.count)
                    let made = rows.target(row, columns.lowerBound)
                    cpixels_from_planes(planes, Self.tileWidth, made, result.channelCount, columns.count)
                }
            }
            guard let drawnRow = self.drawnRow(row) else { continue }
            self.drawn.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                let line = base + drawnRow * self.drawn.layout.planes[0].bytesPerRow
                for span in covered {
                    self.draw(line.assumingMemoryBound(to: UInt8.self), span, rows, row, result, planes)
                }
            }
        }
    }

    /// Draws a row of the overlay on the columns of `span` that are within the base image.
    private func draw(
        _ line: UnsafePointer<UInt8>,
        _ span: Range<Int>,
        _ rows: StoredRows,
        _ row: Int,
        _ result: PixelFormat,
        _ planes: UnsafeMutablePointer<Float>
    ) {
        let stride = Self.tileWidth
        let channels = self.drawn.format.channelCount
        self.forEachTile(span.clamped(to: 0..<self.width)) { columns in
            let target = rows.target(row, columns.lowerBound)
            let source = planes + 4 * stride
            cpixels_to_planes(target, result.channelCount, planes, stride, columns.count)
            let samples = line + (columns.lowerBound - span.lowerBound) * channels
            cpixels_to_planes(samples, channels, source, stride, columns.count)
            self.composition.draw(source, over: planes, opacity: self.opacity, stride: stride, count: columns.count)
            cpixels_from_planes(planes, stride, target, result.channelCount, columns.count)
        }
    }

    private func forEachTile(_ columns: Range<Int>, _ body: (Range<Int>) -> Void) {
        for start in Swift.stride(from: columns.lowerBound, to: columns.upperBound, by: Self.tileWidth) {
            body(start..<min(start + Self.tileWidth, columns.upperBound))
        }
    }
}

extension PixelBuffer {
    /// Returns the image repeated `count` times side by side.
    fileprivate func repeated(_ count: Int) throws -> PixelBuffer {
        let layout = try PixelLayout(format: self.format, width: self.width * count, height: self.height)
        let (from, to) = (self.layout.planes[0], layout.planes[0])
        return try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                self.withUnsafeBytes { source in
                    for row in 0..<from.height {
                        let line = source[(row * from.bytesPerRow)...].prefix(from.usedBytesPerRow)
                        for number in 0..<count {
                            let start = row * to.bytesPerRow + number * from.usedBytesPerRow
                            UnsafeMutableRawBufferPointer(rebasing: target[start...])
                                .copyMemory(from: UnsafeRawBufferPointer(rebasing: line))
                        }
                    }
                }
            }
        )
    }
}

// MARK: - As a description

extension Overlay: Hashable {
    /// Returns whether the keys and the sources are equal; overlays with equal keys stand for equal images.
    public static func == (first: Overlay, second: Overlay) -> Bool {
        first.key == second.key && first.source == second.source
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.key)
    }
}

extension Overlay: Codable {
    /// Finds the image that a description names.
    ///
    /// A description holds the text ``Overlay/source`` instead of pixels. To read descriptions, put a resolver into the
    /// decoder: `decoder.userInfo = resolver.userInfo`. The resolver decides what the text means, and which images it
    /// may reach.
    public struct Resolver: Sendable {
        fileprivate static let key = CodingUserInfoKey(rawValue: "tintype.overlay.resolver")

        /// Returns the image for a text, or throws.
        public let image: @Sendable (_ source: String) throws -> Image

        /// Creates a resolver from a function that returns the image for a text, or throws.
        ///
        /// ```swift
        /// let resolver = Overlay.Resolver { source in
        ///     guard source == "logo" else { throw CocoaError(.fileNoSuchFile) }
        ///     return image
        /// }
        /// let decoder = JSONDecoder()
        /// decoder.userInfo = resolver.userInfo
        /// let pipeline = try decoder.decode(TransformPipeline.self, from: data)
        /// ```
        public init(_ image: @escaping @Sendable (_ source: String) throws -> Image) {
            self.image = image
        }

        /// The entry that a decoder needs in its `userInfo`.
        public var userInfo: [CodingUserInfoKey: any Sendable] {
            Self.key.map { [$0: self] } ?? [:]
        }
    }

    private enum CodingKeys: CodingKey {
        case source, gravity, x, y, tiled, unit, scale, opacity, mode
    }

    /// Reads a description, in which everything except `source` has a default.
    ///
    /// `gravity`, `x` and `y` place the overlay. If `tiled` is true, `x` and `y` are the gaps.
    ///
    /// - Throws: `TransformError.Code.invalidParameter` if the decoder has no ``Resolver``; the errors of the resolver;
    ///   `DecodingError`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(onlyOf: CodingKeys.self)
        let source = try container.decode(String.self, forKey: .source)
        guard let resolver = Resolver.key.flatMap({ decoder.userInfo[$0] }) as? Resolver else {
            throw TransformError.invalidParameter(
                "Nothing says what the overlay \(String(reflecting: String(source.prefix(100)))) is; put an "
                    + "Overlay.Resolver into the decoder's userInfo."
            )
        }
        let isTiled = try container.decodeIfPresent(Bool.self, forKey: .tiled) ?? false
        let gravity = try container.decodeIfPresent(Gravity.self, forKey: .gravity) ?? (isTiled ? .northWest : .center)
        let x = try container.decodeIfPresent(Double.self, forKey: .x) ?? 0
        let y = try container.decodeIfPresent(Double.self, forKey: .y) ?? 0
        let image = try resolver.image(source)
        self.init(
            image,
            identity: Self.digest(of: image.pixels),
            source: source,
            isTiled ? .tiled(gravity, gapX: x, gapY: y) : .single(gravity, offsetX: x, offsetY: y),
            try container.decodeIfPresent(Unit.self, forKey: .unit) ?? .pixels,
            try container.decodeIfPresent(Double.self, forKey: .scale),
            try container.decodeIfPresent(Double.self, forKey: .opacity) ?? 1,
            try container.decodeIfPresent(BlendMode.self, forKey: .mode) ?? .sourceOver
        )
    }

    /// Writes a description, with ``source`` instead of the image.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(self.source, forKey: .source)
        switch self.placement {
        case .single(let gravity, let x, let y):
            try container.encode(gravity, forKey: .gravity)
            try container.encode(x, forKey: .x)
            try container.encode(y, forKey: .y)
        case .tiled(let gravity, let x, let y):
            try container.encode(true, forKey: .tiled)
            try container.encode(gravity, forKey: .gravity)
            try container.encode(x, forKey: .x)
            try container.encode(y, forKey: .y)
        }
        try container.encode(self.unit, forKey: .unit)
        try container.encodeIfPresent(self.scale, forKey: .scale)
        try container.encode(self.opacity, forKey: .opacity)
        try container.encode(self.mode, forKey: .mode)
    }
}
