package import TintypeCoding
import TintypeConcurrency
import TintypeErrors
package import TintypeImage
import TintypeTransforms

/// How one picture is to be made of its file: its header read, its size and its way decided.
package struct DecodePlan: Sendable {
    /// The resampler is given at least this many times the target's pixels a side: what the
    /// codec leaves out below that costs sharpness.
    private static let oversampling = 2
    /// The bytes of decoded pixels from which on rows are resampled as they are decoded, so that the picture is
    /// never there whole.
    ///
    /// Below, several sizes can share what was decoded.
    private static let streamingThreshold = 32 << 20

    private var decoder: ImageDecoder
    private let options: DecodeOptions
    private let resampling: Resampling
    /// In stored pixels, before the picture is turned upright: the turn is cheaper afterwards.
    private let geometry: ResizeGeometry?
    /// How what comes of it is turned.
    private let orientation: Orientation
    /// What is made of the finished picture.
    private let transforms: TransformSequence
    /// Whether the image is decoded whole although its rows could be streamed.
    private var isWhole = false

    package init(decoder: ImageDecoder, request: RenderingRequest, limits: DecodingLimits) throws {
        let plan = try Self.transforms(for: request, header: decoder.header, limits: limits)
        let stored = plan.geometry.beforeTurn(decoder.header.orientation)
        self.decoder = decoder
        self.resampling = stored.resampling
        self.geometry = stored.resizing
        self.orientation = stored.turn
        self.transforms = plan.rest
        var options = DecodeOptions(request, limits: limits)
        options.sufficientSize = self.geometry.map { Self.sufficientSize(for: $0, header: decoder.header) }
        self.options = options
    }

    /// How previews and frames become what `request` asks for; `nil` where that is the whole picture.
    static func rendering(
        for request: RenderingRequest,
        header: ImageHeader,
        limits: DecodingLimits
    ) throws -> StoredRendering? {
        let plan = try Self.transforms(for: request, header: header, limits: limits)
        guard !plan.geometry.isIdentity || !plan.rest.isEmpty else { return nil }
        try Self.checkFrames(of: plan, header: header, limits: limits)
        let stored = plan.geometry.beforeTurn(header.orientation)
        let (geometry, resampling, turn) = (stored.resizing, stored.resampling, stored.turn)
        let scaled = { @Sendable (width: Int, height: Int) in
            geometry?.scaled(
                byWidth: Double(width) / Double(header.pixelWidth),
                height: Double(height) / Double(header.pixelHeight)
            )
        }
        let whole = PixelSize(width: header.pixelWidth, height: header.pixelHeight)
        let upright = PixelSize(header.uprightSize)
        return StoredRendering(
            sufficientSize: geometry.map { Self.sufficientSize(for: $0, header: header) } ?? whole,
            size: stored.size,
            orientation: turn,
            byteCount: { source in
                scaled(source.width, source.height)?
                    .byteCount(
                        width: source.width,
                        height: source.height,
                        format: source.format,
                        resampling: resampling
                    ) ?? 0
            },
            resize: { image in
                let resized =
                    try scaled(image.width, image.height).map { try image.resized($0, resampling) } ?? image
                return resized.replacingPixels(resized.pixels, orientation: turn)
            },
            transform: plan.rest.isEmpty
                ? nil
                : StoredRendering.Transform(
                    byteCount: { Self.transformingByteCount(plan.rest, ofKept: $0) },
                    image: { try plan.rest.image(of: $0) { try Self.check($0, of: upright, limits: limits) } }
                )
        )
    }

    /// Refuses frames that are enlarged beyond what an animation may have.
    private static func checkFrames(of plan: TransformPlan, header: ImageHeader, limits: DecodingLimits) throws {
        let frameCount = header.animation.frameCount
        guard frameCount > 1 else { return }
        let size = plan.geometry.turnedSize
        var total = TransformFootprint(result: try PixelLayout(format: .rgba8, width: size.width, height: size.height))
        try plan.rest.add(to: &total, isFirst: false)
        let pixels = total.result.width.saturatingMultiplied(by: total.result.height)
        let stored = header.pixelWidth.saturatingMultiplied(by: header.pixelHeight)
        guard pixels > stored, pixels.saturatingMultiplied(by: frameCount) > limits.maximumAnimationPixels else {
            return
        }
        throw TransformError(
            code: .invalidSize,
            message:
                "\(frameCount) frames can't be enlarged to \(total.result.width)x\(total.result.height): the limit is "
                + "\(limits.maximumAnimationPixels) pixels together. Ask for a smaller size."
        )
    }

    /// The whole picture as it is stored.
    init(decoder: ImageDecoder, limits: DecodingLimits) {
        self.decoder = decoder
        self.options = DecodeOptions(limits: limits)
        self.resampling = Resampling()
        self.geometry = nil
        self.orientation = decoder.header.orientation
        self.transforms = TransformSequence()
    }

    /// What the header says of the frames; `nil` for a still picture.
    var animation: AnimationTiming? {
        let timing = self.decoder.header.animation
        return timing.frameCount > 1 ? timing : nil
    }

    /// The bytes of memory that carrying out the plan takes at most at once.
    package var byteCount: Int {
        guard self.geometry != nil || self.orientation != self.decoder.header.orientation || !self.transforms.isEmpty
        else { return self.decoder.byteCount(options: self.options) }
        // What no memory holds is weighed as such, and refused by the decode.
        guard let decoded = try? self.decoder.encoded.decodedLayout(options: self.options) else { return .max }
        var target = decoded
        var decoding = self.decoder.encoded.byteCount(for: .picture, options: self.options)
        if let geometry {
            guard let layout = try? PixelLayout(format: decoded.format, width: geometry.width, height: geometry.height)
            else { return .max }
            target = layout
            decoding = self.decodingByteCount(decoded, target.byteCount, geometry)
        }
        // The target is converted and turned when nothing else is there any more.
        let finishing = self.decoder.header.finishingByteCount(
            of: target.byteCount,
            as: target.format,
            orientation: self.orientation,
            options: self.options
        )
        return max(decoding, finishing, self.transformingByteCount(of: target))
    }

    /// The bytes that the transforms of what was stored as `target` take at most at once.
    private func transformingByteCount(of target: PixelLayout) -> Int {
        guard !self.transforms.isEmpty else { return 0 }
        let size = self.orientation.uprightSize(width: target.width, height: target.height)
        // Gray may become colour.
        let format =
            target.format == .gray8 && self.decoder.header.colorProfile != nil ? PixelFormat.rgb8 : target.format
        guard let finished = try? PixelLayout(format: format, width: size.width, height: size.height) else {
            return .max
        }
        var total = TransformFootprint(result: finished)
        // Those that can't be done are refused when it is their turn.
        try? self.transforms.add(to: &total, isFirst: false)
        return total.workingByteCount.saturatingAdded(to: total.result.byteCount)
    }

    /// The bytes that transforms of a finished picture, which is kept, take at most at once, with it and the result.
    private static func transformingByteCount(_ transforms: TransformSequence, ofKept finished: PixelLayout) -> Int {
        var total = TransformFootprint(result: finished)
        try? transforms.add(to: &total, isFirst: true)
        return total.workingByteCount.saturatingAdded(to: total.result.byteCount)
            .saturatingAdded(to: finished.byteCount)
    }

    private func decodingByteCount(_ decoded: PixelLayout, _ target: Int, _ geometry: ResizeGeometry) -> Int {
        let encoded = self.decoder.encoded
        let (width, height) = (decoded.width, decoded.height)
        guard self.isStreamed else {
            let scaled = self.scaled(geometry, coveredWidth: Double(width), coveredHeight: Double(height))
            let resampling = scaled.byteCount(
                width: width,
                height: height,
                format: decoded.format,
                resampling: self.resampling
            )
            let resizing = decoded.byteCount.saturatingAdded(to: target).saturatingAdded(to: resampling)
            return max(encoded.byteCount(for: .picture, options: self.options), resizing)
        }
        let header = self.decoder.header
        let strip = geometry.byteCount(
            width: header.pixelWidth,
            height: header.pixelHeight,
            format: decoded.format,
            resampling: self.resampling,
            isStreamed: true
        )
        return encoded.byteCount(for: .rows, options: self.options)
            .saturatingAdded(to: target).saturatingAdded(to: strip)
    }

    /// Whether the picture is so large that its rows are resampled as they are decoded.
    private var isStreamed: Bool {
        let encoded = self.decoder.encoded
        return encoded.givesRows && !self.isWhole
            && encoded.byteCount(for: .picture, options: self.options) >= Self.streamingThreshold
    }

    /// Makes the picture.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func decode() throws -> Image { try self.decode(nil) }

    /// Makes the image, and reports the time of each phase.
    ///
    /// - Parameter observer: Receives the times.
    /// - Returns: The image.
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    func decode(_ observer: (any RenderingObserver)?) throws -> Image {
        func decoding<Result>(_ work: () throws -> Result) throws -> Result {
            try observer?.measuring(.decode, work) ?? work()
        }
        guard let geometry else {
            let image = try decoding {
                try self.decoder.finish(self.turning(self.decodeStep().image), options: self.options)
            }
            return try self.transformed(consume image, observer)
        }
        let streamed = try decoding {
            try self.streamed(geometry).map { try self.decoder.finish($0, options: self.options) }
        }
        if let streamed { return try self.transformed(consume streamed, observer) }
        return try self.picture(of: decoding { try self.decodeStep() }, geometry, observer)
    }

    /// The picture, with a note of how it is turned.
    private func turning(_ stored: Image) -> Image {
        guard self.orientation != self.decoder.header.orientation else { return stored }
        return stored.replacingPixels(stored.pixels, orientation: self.orientation)
    }

    /// Transforms a picture, which is let go as soon as the first transform has made another of it.
    private func transformed(
        _ finished: consuming Image,
        _ observer: (any RenderingObserver)?,
        part indices: Range<Int>? = nil
    ) throws -> Image {
        let transforms = indices.map { self.transforms.part($0) } ?? self.transforms
        guard !transforms.isEmpty else { return finished }
        let upright = PixelSize(self.decoder.header.uprightSize)
        let start = ContinuousClock.now
        defer { observer?.didEnd(.transform, since: start) }
        return try transforms.image(of: finished) {
            try Self.check($0, of: upright, limits: self.options.limits)
        }
    }

    /// The layout of the codec's result, which other plans may want too; `nil` if the image is larger than that, or takes so
    /// much memory besides that other images should not wait for it.
    var step: PixelLayout? {
        guard let layout = try? self.decoder.encoded.decodedLayout(options: self.options),
            self.geometry.map({ $0.width <= layout.width && $0.height <= layout.height }) ?? true,
            self.partByteCount(of: layout) <= max(layout.byteCount.saturatingMultiplied(by: 4), 1 << 20)
        else { return nil }
        return layout
    }

    /// The bytes that the plan takes at most beside a step that is kept: the image, once more as it is finished, and what its
    /// transforms take.
    package func partByteCount(of step: PixelLayout) -> Int {
        var target = step
        if let geometry {
            guard let layout = try? PixelLayout(format: step.format, width: geometry.width, height: geometry.height)
            else { return .max }
            target = layout
        }
        return max(target.byteCount.saturatingMultiplied(by: 2), self.transformingByteCount(of: target))
    }

    /// Whether the plan, if it is carried out alone, has the whole image in memory at no time.
    var streams: Bool { self.geometry != nil && self.isStreamed }

    /// The same plan, which decodes the image whole for others that share it.
    var whole: DecodePlan {
        var plan = self
        plan.isWhole = true
        return plan
    }

    /// The finished image before the transforms, as it is made of a step.
    struct Base: Hashable {
        let geometry: ResizeGeometry?
        let resampling: Resampling
        let orientation: Orientation
        let scale: Double
    }

    var base: Base {
        Base(
            geometry: self.geometry,
            resampling: self.resampling,
            orientation: self.orientation,
            scale: self.options.scale
        )
    }

    /// The number of transforms that this plan and another one of the same ``base`` begin with.
    func commonTransformCount(with other: DecodePlan) -> Int { self.transforms.commonCount(with: other.transforms) }

    /// Names what the first `count` transforms make of a step.
    package func partKey(_ count: Int) -> String { "\(self.base), \(self.transforms.keys(ofFirst: count))" }

    /// The state of an image in the making: the codec's result, or the image after some of the transforms.
    enum Part: Sendable {
        case stored(DecodedImage)
        case finished(Image, transformCount: Int)
    }

    /// Makes of a part of the image the finished image after `count` transforms, by default after all.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    func image(of part: Part, transformCount count: Int? = nil, _ observer: (any RenderingObserver)?) throws -> Image {
        let count = count ?? self.transforms.count
        switch part {
        case .stored(let decoded):
            return try self.transformed(self.finished(decoded, observer), observer, part: 0..<count)
        case .finished(let image, let done): return try self.transformed(image, observer, part: done..<count)
        }
    }

    /// Decodes what ``step`` describes.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func decodeStep() throws -> DecodedImage {
        try self.decoder.decodeStored(options: self.options)
    }

    /// Returns the same plan, to be carried out once with the help of other lanes; `nil` if one lane is as fast.
    func parallel() -> (plan: DecodePlan, parallel: ParallelDecode)? {
        let kind = self.streams ? DecodeKind.rows : .picture
        guard let (decoder, parallel) = self.decoder.parallelDecode(kind, options: self.options) else { return nil }
        var plan = self
        plan.decoder = decoder
        return (plan, parallel)
    }

    private func picture(
        of decoded: consuming DecodedImage,
        _ geometry: ResizeGeometry,
        _ observer: (any RenderingObserver)?
    ) throws -> Image {
        try self.transformed(self.finished(decoded, geometry, observer), observer)
    }

    /// The finished image before the transforms.
    private func finished(_ decoded: DecodedImage, _ observer: (any RenderingObserver)?) throws -> Image {
        guard let geometry else { return try self.decoder.finish(self.turning(decoded.image), options: self.options) }
        return try self.finished(decoded, geometry, observer)
    }

    private func finished(
        _ decoded: consuming DecodedImage,
        _ geometry: ResizeGeometry,
        _ observer: (any RenderingObserver)?
    ) throws -> Image {
        let start = ContinuousClock.now
        defer { observer?.didEnd(.transform, since: start) }
        let resized = try self.turning(self.resized(decoded, geometry))
        // What was decoded is no longer needed.
        _ = consume decoded
        return try self.decoder.finish(consume resized, options: self.options)
    }

    private func resized(_ decoded: borrowing DecodedImage, _ geometry: ResizeGeometry) throws -> Image {
        let scaled = self.scaled(geometry, coveredWidth: decoded.coveredWidth, coveredHeight: decoded.coveredHeight)
        try Task.checkCancellation()
        return try decoded.image.resized(scaled, self.resampling)
    }

    /// The resized picture, made row by row; `nil` when it is small, or can't be streamed.
    private func streamed(_ geometry: ResizeGeometry) throws -> Image? {
        let header = self.decoder.header
        guard self.isStreamed else { return nil }
        return try self.decoder.withRows(options: self.options) { rows, coveredWidth, coveredHeight in
            let scaled = self.scaled(geometry, coveredWidth: coveredWidth, coveredHeight: coveredHeight)
            let image = try Image.resampling(rows, scaled, self.resampling)
            return Image(
                pixels: image.pixels,
                orientation: self.orientation,
                sourceFormat: header.format,
                damage: image.damage
            )
        }
    }

    /// The geometry for a picture that the codec scaled down.
    private func scaled(_ geometry: ResizeGeometry, coveredWidth: Double, coveredHeight: Double) -> ResizeGeometry {
        geometry.scaled(
            byWidth: coveredWidth / Double(self.decoder.header.pixelWidth),
            height: coveredHeight / Double(self.decoder.header.pixelHeight)
        )
    }

    /// What is done with the upright picture: it is brought to the size of the thumbnail or within the limit, and
    /// transformed.
    private static func transforms(
        for request: RenderingRequest,
        header: ImageHeader,
        limits: DecodingLimits
    ) throws -> TransformPlan {
        try self.transforms(
            for: request,
            size: PixelSize(header.uprightSize),
            hasAlpha: header.hasAlpha,
            limits: limits
        )
    }

    /// The same for a picture of `size`.
    static func transforms(
        for request: RenderingRequest,
        size: PixelSize,
        hasAlpha: Bool,
        limits: DecodingLimits
    ) throws -> TransformPlan {
        var geometry = TransformGeometry(of: size)
        if let thumbnail = request.thumbnail {
            _ = try geometry.resize(thumbnail)
        } else if let limit = request.scaleDownLimit,
            let scaled = ResizeGeometry(pixelByteLimit: limit, width: size.width, height: size.height)
        {
            geometry.resize(scaled, .fit(width: scaled.width, height: scaled.height))
        }
        let plan = try TransformPlan(request.transforms, after: geometry)
        let format: PixelFormat = hasAlpha ? .rgba8 : .rgb8
        let result = plan.geometry.turnedSize
        try Self.check(result, of: size, limits: limits)
        var total = TransformFootprint(
            result: try PixelLayout(format: format, width: result.width, height: result.height)
        )
        let work = plan.rest.isEmpty ? nil : DecodeWork(limits)
        try plan.rest.add(to: &total, isFirst: false) { result, transformCount in
            try Self.check(result, of: size, limits: limits)
            let pixels = result.width.saturatingMultiplied(by: result.height)
            try work?.count(pixels.saturatingMultiplied(by: transformCount))
        }
        return plan
    }

    /// Refuses to enlarge a picture beyond what one may have that is decoded.
    static func check(_ size: PixelSize, of source: PixelSize, limits: DecodingLimits) throws {
        let isLarger =
            max(size.width, size.height) > max(source.width, source.height)
            || min(size.width, size.height) > min(source.width, source.height)
        let pixels = size.width.saturatingMultiplied(by: size.height)
        let side = max(size.width, size.height)
        guard isLarger, pixels > limits.maximumPixels || side > limits.maximumSide else { return }
        throw TransformError(
            code: .invalidSize,
            message: "A picture can't be enlarged to \(size.width)x\(size.height): the limits are "
                + "\(limits.maximumPixels) pixels and \(limits.maximumSide) a side. Ask for a smaller size."
        )
    }

    /// The whole picture's size at which the part that is read is oversampled enough.
    private static func sufficientSize(for geometry: ResizeGeometry, header: ImageHeader) -> PixelSize {
        func scaled(_ side: Int, _ target: Int, _ part: Double) -> Int {
            // More than is stored can't be read.
            Int(min(Double(side), (Double(side) * Double(target) * Double(self.oversampling) / part).rounded(.up)))
        }
        return PixelSize(
            width: scaled(header.pixelWidth, geometry.width, geometry.sourceWidth),
            height: scaled(header.pixelHeight, geometry.height, geometry.sourceHeight)
        )
    }
}

extension PixelSize {
    fileprivate init(_ size: (width: Int, height: Int)) {
        self.init(width: size.width, height: size.height)
    }
}
