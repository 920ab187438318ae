// SPDX-License-Identifier: Apache-2.0

package import TintypeCoding
package import TintypeImage
import TintypeTransforms

/// The way from an opened file to an image: its size, its steps and its memory.
///
/// The header is read, and no pixels are.
package struct DecodePlan: Sendable {
    /// The bytes of decoded pixels from which on rows are resampled as they are decoded, so that memory never holds the
    /// whole image.
    ///
    /// Below that, several sizes can share a decode.
    private static let streamingThreshold = 32 << 20

    private var decoder: ImageDecoder
    private let options: DecodeOptions
    private let resampling: Resampling
    /// The resize in stored pixels, before the image is turned upright.
    ///
    /// The turn is cheaper afterwards.
    private let geometry: ResizeGeometry?
    /// The turn after the resize.
    private let orientation: Orientation
    /// The transforms of the finished image.
    private let transforms: TransformSequence
    /// Whether the image is decoded whole although its rows could be streamed.
    private var isWhole = false

    package init(decoder: ImageDecoder, request: RenderingRequest, limits: DecodingLimits) throws {
        let header = decoder.header
        let plan = try request.transformPlan(for: header, limits: limits)
        let stored = plan.geometry.beforeTurn(header.orientation)
        self.decoder = decoder
        self.resampling = stored.resampling
        self.geometry = stored.resizing
        self.orientation = stored.turn
        self.transforms = plan.rest
        var options = DecodeOptions(request, limits: limits)
        options.sufficientSize = stored.resizing.map { header.sufficientSize(for: $0) }
        self.options = options
    }

    /// Creates a plan for the whole image at its stored size.
    init(decoder: ImageDecoder, limits: DecodingLimits) {
        self.decoder = decoder
        self.options = DecodeOptions(limits: limits)
        self.resampling = Resampling()
        self.geometry = nil
        self.orientation = decoder.header.orientation
        self.transforms = TransformSequence()
    }

    /// The frames that the header lists; `nil` for a still image.
    var animation: AnimationTiming? {
        let timing = self.decoder.header.animation
        return timing.frameCount > 1 ? timing : nil
    }

    /// The most bytes of memory that the plan takes at once.
    package var byteCount: Int {
        guard self.geometry != nil || self.orientation != self.decoder.header.orientation || !self.transforms.isEmpty
        else { return self.decoder.byteCount(options: self.options) }
        // The decode refuses an image that no memory holds.
        guard let decoded = try? self.decoder.encoded.decodedLayout(options: self.options) else { return .max }
        var target = decoded
        var decoding = self.decoder.encoded.byteCount(for: .image, options: self.options)
        if let geometry {
            guard let layout = try? PixelLayout(format: decoded.format, width: geometry.width, height: geometry.height)
            else { return .max }
            target = layout
            decoding = self.decodingByteCount(decoded, target.byteCount, geometry)
        }
        // The conversion and the turn of the target come after everything else is freed.
        let finishing = self.decoder.header.finishingByteCount(
            of: target.byteCount,
            as: target.format,
            orientation: self.orientation,
            options: self.options
        )
        return max(decoding, finishing, self.transformingByteCount(of: target))
    }

    /// The most bytes that the transforms take at once, if the resize gives `target`.
    private func transformingByteCount(of target: PixelLayout) -> Int {
        guard !self.transforms.isEmpty else { return 0 }
        let size = self.orientation.uprightSize(width: target.width, height: target.height)
        // The conversion may turn gray into colour.
        let format =
            target.format == .gray8 && self.decoder.header.colorProfile != nil ? PixelFormat.rgb8 : target.format
        guard let finished = try? PixelLayout(format: format, width: size.width, height: size.height) else {
            return .max
        }
        var total = TransformFootprint(result: finished)
        // An impossible transform fails when its turn comes.
        try? self.transforms.add(to: &total, isFirst: false)
        return total.workingByteCount.saturatingAdded(to: total.result.byteCount)
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
            return max(encoded.byteCount(for: .image, options: self.options), resizing)
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

    /// Whether the image is so large that its rows are resampled as they are decoded.
    private var isStreamed: Bool {
        let encoded = self.decoder.encoded
        return encoded.givesRows && !self.isWhole
            && encoded.byteCount(for: .image, options: self.options) >= Self.streamingThreshold
    }

    /// Makes the image, and reports the time of each phase.
    ///
    /// - Parameter observer: Receives the times.
    /// - Returns: The image.
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func decode(_ observer: (any RenderingObserver)? = nil) throws -> Image {
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
        return try self.image(of: decoding { try self.decodeStep() }, geometry, observer)
    }

    /// Marks a stored image with the turn of the plan.
    private func turning(_ stored: Image) -> Image {
        guard self.orientation != self.decoder.header.orientation else { return stored }
        return stored.replacingPixels(stored.pixels, orientation: self.orientation)
    }

    /// Transforms an image, and frees it as soon as the first transform has made another one.
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
            try self.options.limits.checkEnlarging($0, from: upright)
        }
    }

    /// The layout of the codec's result, which other plans may share; `nil` if the image is larger than that, or takes so
    /// much more memory that other images should not wait for it.
    var step: PixelLayout? {
        guard let layout = try? self.decoder.encoded.decodedLayout(options: self.options),
            self.geometry.map({ $0.width <= layout.width && $0.height <= layout.height }) ?? true,
            self.partByteCount(of: layout) <= max(layout.byteCount.saturatingMultiplied(by: 4), 1 << 20)
        else { return nil }
        return layout
    }

    /// The most bytes that the plan takes in addition to a step that is kept: the image, a copy while it is finished, and its
    /// transforms.
    package func partByteCount(of step: PixelLayout) -> Int {
        var target = step
        if let geometry {
            guard let layout = try? PixelLayout(format: step.format, width: geometry.width, height: geometry.height)
            else { return .max }
            target = layout
        }
        return max(target.byteCount.saturatingMultiplied(by: 2), self.transformingByteCount(of: target))
    }

    /// Whether memory never holds the whole image, if the plan is carried out alone.
    var streams: Bool { self.geometry != nil && self.isStreamed }

    /// The same plan with a decode of the whole image, which others can share.
    var whole: DecodePlan {
        var plan = self
        plan.isWhole = true
        return plan
    }

    /// The steps from the codec's result to the image before the transforms.
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

    /// Names the image after the first `count` transforms of a step.
    package func partKey(_ count: Int) -> String { "\(self.base), \(self.transforms.keys(ofFirst: count))" }

    /// The state of an image in the making: the codec's result, or the image after some of the transforms.
    enum Part: Sendable {
        case stored(DecodedImage)
        case finished(Image, transformCount: Int)
    }

    /// Continues with a part of the image up to the first `count` transforms, by default up to all of them.
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

    /// Decodes up to ``step``.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    func decodeStep() throws -> DecodedImage {
        try self.decoder.decodeStored(options: self.options)
    }

    /// Returns the same plan, to be carried out once with the help of other lanes; `nil` if one lane is as fast.
    func parallel() -> (plan: DecodePlan, parallel: ParallelDecode)? {
        let kind = self.streams ? DecodeKind.rows : .image
        guard let (decoder, parallel) = self.decoder.parallelDecode(kind, options: self.options) else { return nil }
        var plan = self
        plan.decoder = decoder
        return (plan, parallel)
    }

    private func image(
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
        // Free the decoded image before the conversion.
        _ = consume decoded
        return try self.decoder.finish(consume resized, options: self.options)
    }

    private func resized(_ decoded: borrowing DecodedImage, _ geometry: ResizeGeometry) throws -> Image {
        let scaled = self.scaled(geometry, coveredWidth: decoded.coveredWidth, coveredHeight: decoded.coveredHeight)
        try Task.checkCancellation()
        return try decoded.image.resized(scaled, self.resampling)
    }

    /// Decodes and resizes the image row by row; returns `nil` if it is small, or if its format does not allow that.
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

    /// The resize of an image that the codec has scaled down.
    private func scaled(_ geometry: ResizeGeometry, coveredWidth: Double, coveredHeight: Double) -> ResizeGeometry {
        geometry.scaled(
            byWidth: coveredWidth / Double(self.decoder.header.pixelWidth),
            height: coveredHeight / Double(self.decoder.header.pixelHeight)
        )
    }
}
