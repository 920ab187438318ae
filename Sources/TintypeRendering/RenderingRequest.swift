// SPDX-License-Identifier: Apache-2.0

package import TintypeCoding
import TintypeImage
package import TintypeTransforms

/// The part of a request that says how the bytes become an image.
package struct RenderingRequest: Sendable {
    /// The size of the image; `nil` keeps the stored size.
    package var thumbnail: Resize?
    /// The transforms after the resize.
    package var transforms: TransformPipeline
    /// The most bytes of pixels that an image without a thumbnail may have; `nil` is no limit.
    package var scaleDownLimit: Int?
    /// The pixels for each point of the image.
    package var scale: Double
    /// A coder to use instead of the registered ones.
    package var coder: (any ImageCoder)?
    /// The name that tells ``coder`` apart from others.
    package var coderName: String?
    /// The limits of the decode; `nil` takes the pipeline's limits.
    package var limits: DecodingLimits?
    /// Whether an image whose end is missing is decoded as far as it goes.
    package var allowsTruncated: Bool
    /// Whether the image keeps its samples and its profile instead of becoming sRGB.
    package var keepsColorProfile: Bool
    /// Whether an animation is decoded as the still image of its first frame.
    package var firstFrameOnly: Bool

    /// Creates a request; by default for the whole image, upright and in sRGB.
    package init(
        thumbnail: Resize? = nil,
        transforms: TransformPipeline = [],
        scaleDownLimit: Int? = nil,
        scale: Double = 1,
        coder: (any ImageCoder)? = nil,
        coderName: String? = nil,
        limits: DecodingLimits? = nil,
        allowsTruncated: Bool = false,
        keepsColorProfile: Bool = false,
        firstFrameOnly: Bool = false
    ) {
        self.thumbnail = thumbnail
        self.transforms = transforms
        self.scaleDownLimit = scaleDownLimit
        self.scale = scale
        self.coder = coder
        self.coderName = coderName
        self.limits = limits
        self.allowsTruncated = allowsTruncated
        self.keepsColorProfile = keepsColorProfile
        self.firstFrameOnly = firstFrameOnly
    }

    /// Names the way in which the codec decodes the bytes, whatever the size of the image.
    package var decodingName: String {
        let coder = self.coderName.map { "\($0.debugDescription)" } ?? ""
        let limits = self.limits.map { "\($0)" } ?? ""
        return "\(coder), \(self.allowsTruncated), \(self.keepsColorProfile), \(limits)"
    }
}

extension DecodeOptions {
    /// The options that `request` asks for, except the size.
    init(_ request: RenderingRequest, limits: DecodingLimits) {
        self.init(
            limits: limits,
            allowsTruncated: request.allowsTruncated,
            color: request.keepsColorProfile ? .keep : .convert(.relativeColorimetric),
            scale: request.scale
        )
    }
}

// MARK: Planning

extension RenderingRequest {
    /// The least number of decoded pixels for each pixel of the target, on each side.
    ///
    /// With fewer, the image loses sharpness.
    fileprivate static let oversampling = 2

    /// Plans the resize and the transforms of an upright image of `size`.
    ///
    /// - Throws: `TransformError`, `ImageError`, or `CodingError` if the transforms take too much work.
    func transformPlan(for size: PixelSize, hasAlpha: Bool, limits: DecodingLimits) throws -> TransformPlan {
        var geometry = TransformGeometry(of: size)
        if let thumbnail {
            _ = try geometry.resize(thumbnail)
        } else if let limit = self.scaleDownLimit,
            let scaled = ResizeGeometry(pixelByteLimit: limit, width: size.width, height: size.height)
        {
            geometry.resize(scaled, .fit(width: scaled.width, height: scaled.height))
        }
        let plan = try TransformPlan(self.transforms, after: geometry)
        let format: PixelFormat = hasAlpha ? .rgba8 : .rgb8
        let result = plan.geometry.turnedSize
        try limits.checkEnlarging(result, from: size)
        var total = TransformFootprint(
            result: try PixelLayout(format: format, width: result.width, height: result.height)
        )
        let work = plan.rest.isEmpty ? nil : DecodeWork(limits)
        try plan.rest.add(to: &total, isFirst: false) { result, transformCount in
            try limits.checkEnlarging(result, from: size)
            let pixels = result.width.saturatingMultiplied(by: result.height)
            try work?.count(pixels.saturatingMultiplied(by: transformCount))
        }
        return plan
    }

    /// Plans the resize and the transforms of a file.
    func transformPlan(for header: ImageHeader, limits: DecodingLimits) throws -> TransformPlan {
        try self.transformPlan(for: PixelSize(header.uprightSize), hasAlpha: header.hasAlpha, limits: limits)
    }

    /// Describes how previews and frames of a file are rendered; `nil` if they stay as stored.
    func storedRendering(header: ImageHeader, limits: DecodingLimits) throws -> StoredRendering? {
        let plan = try self.transformPlan(for: header, limits: limits)
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
            sufficientSize: geometry.map { header.sufficientSize(for: $0) } ?? whole,
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
                    byteCount: { plan.rest.byteCount(ofKept: $0) },
                    image: { try plan.rest.image(of: $0) { try limits.checkEnlarging($0, from: upright) } }
                )
        )
    }

    /// Refuses frames that are enlarged beyond the limit of an animation.
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
                "\(frameCount) frames cannot be enlarged to \(total.result.width)x\(total.result.height): the limit is "
                + "\(limits.maximumAnimationPixels) pixels together. Ask for a smaller size."
        )
    }
}

extension DecodingLimits {
    /// Refuses an enlarged image that is over the limits of a decoded one.
    func checkEnlarging(_ size: PixelSize, from source: PixelSize) throws {
        let isLarger =
            max(size.width, size.height) > max(source.width, source.height)
            || min(size.width, size.height) > min(source.width, source.height)
        let pixels = size.width.saturatingMultiplied(by: size.height)
        let side = max(size.width, size.height)
        guard isLarger, pixels > self.maximumPixels || side > self.maximumSide else { return }
        throw TransformError(
            code: .invalidSize,
            message: "An image cannot be enlarged to \(size.width)x\(size.height): the limits are "
                + "\(self.maximumPixels) pixels and \(self.maximumSide) a side. Ask for a smaller size."
        )
    }
}

extension ImageHeader {
    /// The size of the whole image at which the part that a resize reads has enough pixels.
    func sufficientSize(for geometry: ResizeGeometry) -> PixelSize {
        func scaled(_ side: Int, _ target: Int, _ part: Double) -> Int {
            let wanted = Double(side) * Double(target) * Double(RenderingRequest.oversampling) / part
            // The file has no more pixels than it stores.
            return Int(min(Double(side), wanted.rounded(.up)))
        }
        return PixelSize(
            width: scaled(self.pixelWidth, geometry.width, geometry.sourceWidth),
            height: scaled(self.pixelHeight, geometry.height, geometry.sourceHeight)
        )
    }
}

extension TransformSequence {
    /// The most bytes that the transforms take at once, with an image that is kept and the result.
    fileprivate func byteCount(ofKept image: PixelLayout) -> Int {
        var total = TransformFootprint(result: image)
        try? self.add(to: &total, isFirst: true)
        return total.workingByteCount.saturatingAdded(to: total.result.byteCount)
            .saturatingAdded(to: image.byteCount)
    }
}

extension PixelSize {
    init(_ size: (width: Int, height: Int)) {
        self.init(width: size.width, height: size.height)
    }
}
