// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeCoding
import TintypeConcurrency
package import TintypeImage
import TintypeTransforms

/// Encodes images and animations on lanes, within the memory gate.
package struct EncodePipeline: Sendable {
    private let registry: CoderRegistry
    private let lanes: GatedLanes

    package init(registry: CoderRegistry, lanes: GatedLanes) {
        self.registry = registry
        self.lanes = lanes
    }

    // MARK: Images

    /// Encodes `image` in `format` when there is room for its memory.
    ///
    /// Without a format, the image gets the one that ``TintypeImage/ImageFormat/suitable(for:)`` names.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    package func encode(
        _ image: Image,
        as format: ImageFormat?,
        options: EncodeOptions,
        maximumSide: Int?,
        _ observer: (any RenderingObserver)? = nil
    ) async throws -> Data {
        let image = try await self.upright(image, maximumSide: maximumSide, observer)
        let format = if let format { format } else { try await self.suitableFormat(for: image, observer) }
        let coder = try self.registry.coder(encoding: format)
        let encode = Encode(image: image, coder: coder, format: format, options: options.describingUpright)
        return try await self.lanes.run(taking: encode.byteCount, orAtLeast: encode.leastByteCount, observer) {
            hasRoom in
            let start = ContinuousClock.now
            defer { observer?.didEnd(.encode, since: start) }
            return try encode.run(savingMemory: !hasRoom)
        }
    }

    /// The encode of an upright image.
    private struct Encode: Sendable {
        let image: Image
        let coder: any ImageCoder
        let format: ImageFormat
        let options: EncodeOptions

        /// The bytes that it takes at most at once.
        var byteCount: Int { self.byteCount(of: self.options) }
        /// The same when it saves memory at the cost of time.
        var leastByteCount: Int { self.byteCount(of: self.options.savingMemory) }

        private func byteCount(of options: EncodeOptions) -> Int {
            self.coder
                .encodingByteCount(of: self.image.pixels.layout, frameCount: nil, as: self.format, options: options)
                .saturatingAdded(to: self.image.conversionByteCount)
                .saturatingAdded(to: options.metadata.writingByteCount)
        }

        func run(savingMemory: Bool) throws -> Data {
            let options = savingMemory ? self.options.savingMemory : self.options
            return try self.coder.encode(self.image, as: self.format, options: options)
        }
    }

    /// Returns `image` upright, with no side longer than `maximumSide`.
    private func upright(
        _ image: Image,
        maximumSide: Int?,
        _ observer: (any RenderingObserver)?
    ) async throws -> Image {
        let resize = maximumSide.map { Resize.fit(width: $0, height: $0) }
        guard image.orientation != .up || resize != nil else { return image }
        var byteCount = image.turnByteCount
        if let resize {
            let footprint = try resize.footprint(for: image.pixels.layout)
            byteCount = byteCount.saturatingAdded(to: footprint.workingByteCount)
                .saturatingAdded(to: footprint.result.byteCount)
        }
        return try await self.lanes.run(taking: byteCount, observer) {
            let image = try image.upright()
            return try resize.map { try image.resized($0) } ?? image
        }
    }

    /// Reads the pixels on a lane if they decide the format.
    private func suitableFormat(for image: Image, _ observer: (any RenderingObserver)?) async throws -> ImageFormat {
        guard image.hasAlpha else { return .suitable(for: image) }
        return try await self.lanes.run(observer) { .suitable(for: image) }
    }

    /// Returns whether a pixel of `image` is not opaque, and reads the pixels on a lane for that.
    ///
    /// - Throws: `CancellationError`.
    package func hasTransparency(_ image: Image) async throws -> Bool {
        guard image.hasAlpha else { return false }
        return try await self.lanes.run { image.hasTransparency }
    }

    // MARK: Animations

    /// Returns whether the coder of `format` writes animations.
    package func writesAnimations(as format: ImageFormat) -> Bool {
        (try? self.registry.coder(encoding: format))?.animatedFormats.contains(format) ?? false
    }

    /// Encodes the frames of `frames` in `format` when there is room for them and for the encode.
    ///
    /// - Parameters:
    ///   - frames: The frames.
    ///   - format: The format.
    ///   - options: The options of the coder.
    ///   - frameLimit: The most frames to encode, from the first one on; `nil` is no limit.
    ///   - observer: Receives the times of the phases.
    /// - Returns: The file.
    /// - Throws: `CodingError`, `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    package func encode(
        _ frames: FrameSource,
        as format: ImageFormat,
        options: EncodeOptions,
        frameLimit: Int? = nil,
        _ observer: (any RenderingObserver)? = nil
    ) async throws -> Data {
        let coder = try self.registry.coder(encoding: format)
        let (options, count) = (options.describingUpright, min(frames.frameCount, max(1, frameLimit ?? .max)))
        // The other frames are as large as the first one.
        let first = try await frames.frame(at: 0)
        let encoding = try coder.encodingByteCount(
            of: AnimationContent(frames: Array(repeating: .init(image: first, milliseconds: 0), count: count)),
            as: format,
            options: options
        )
        let byteCount = first.pixels.byteCount.saturatingMultiplied(by: count)
            .saturatingAdded(to: max(encoding, frames.byteCountOfFrame))
        return try await self.lanes.withWeight(byteCount, observer) {
            try self.lanes.requireRoom(byteCount)
            // Work inside the gate must not wait for it. The gate has counted these frames already.
            let start = ContinuousClock.now
            let animation = try await frames.contentWithoutGate(count: count)
            observer?.didEnd(.decode, since: start)
            return try await self.lanes.run(observer) {
                let start = ContinuousClock.now
                defer { observer?.didEnd(.encode, since: start) }
                return try coder.encode(animation, as: format, options: options)
            }
        }
    }

    /// Encodes `animation` in `format` when there is room for its memory.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    package func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) async throws -> Data {
        let coder = try self.registry.coder(encoding: format)
        let byteCount = try coder.encodingByteCount(of: animation, as: format, options: options)
        return try await self.lanes.run(taking: byteCount) {
            try coder.encode(animation, as: format, options: options)
        }
    }

    /// Runs `encode` for a caller that leaves at once when it is cancelled, as callers of loads do.
    ///
    /// The encode ends, and leaves the gate, when its codec checks the cancellation next. Some codecs take a second.
    package func leavingOnCancellation(_ encode: @escaping @Sendable () async throws -> Data) async throws -> Data {
        try await SharedTask().value(encode)
    }
}

extension EncodeOptions {
    /// The options for pixels that were turned upright: the orientation in their EXIF block no longer holds.
    fileprivate var describingUpright: EncodeOptions {
        guard let block = self.metadata.exif else { return self }
        var options = self
        options.metadata.exif = EXIF.upright(block)
        return options
    }
}
