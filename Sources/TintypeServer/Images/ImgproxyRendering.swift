// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeImage
import TintypeImgproxy
import TintypeTransforms

/// The transforms for imgproxy's options and an image of a known size.
///
/// The size follows imgproxy's arithmetic to the pixel. The loader requests the transforms when it has read the header
/// of the source, so that a codec that can scale or crop does so while it decodes.
struct ImgproxyRendering: SizedTransformer {
    let options: ProcessingOptions
    /// The image of the watermark, if the options have one and the server has an image for it.
    let watermark: Image?
    /// A factor for the opacity of the watermark.
    let watermarkOpacity: Double
    let light: LightSpace
    let key: String

    /// Increase this number whenever the pixels change, so that entries of earlier versions are not served.
    private static let revision = 1

    init(options: ProcessingOptions, watermark: Image?, watermarkOpacity: Double, light: LightSpace) {
        self.options = options
        self.watermark = watermark
        self.watermarkOpacity = watermarkOpacity
        self.light = light
        let overlay = watermark.map {
            ",watermark(\(Overlay($0, name: "watermark").key),\(watermarkOpacity))"
        }
        self.key = "imgproxy(\(Self.revision),\(options.renderingText),\(light.rawValue)\(overlay ?? ""))"
    }

    func transforms(for size: PixelSize) throws(TransformError) -> TransformPipeline {
        let options = self.options
        var steps: [ImageTransform] = []
        if options.rotation != 0 { steps.append(.rotate(degrees: Double(options.rotation))) }
        if options.flipsHorizontally { steps.append(.flip(.horizontal)) }
        if options.flipsVertically { steps.append(.flip(.vertical)) }
        // The boxes refer to the image after these rotations and flips.
        let geometry = ResultGeometry(options, sourceWidth: size.width, sourceHeight: size.height)
        if geometry.crop.size != geometry.source { steps.append(.crop(Crop(geometry.crop))) }
        let scaled = geometry.scaled
        if scaled != geometry.crop.size {
            let resize = Resize(
                width: scaled.width,
                height: scaled.height,
                mode: .stretch,
                upscales: true,
                light: self.light
            )
            steps.append(.resize(resize))
        }
        if geometry.resultCrop.size != scaled { steps.append(.crop(Crop(geometry.resultCrop))) }
        if options.blur > 0 { steps.append(.blur(.gaussian(sigma: options.blur))) }
        if options.sharpen > 0 { steps.append(.sharpen(Sharpen(sigma: options.sharpen))) }
        if options.pixelate > 1 { steps.append(.pixelate(size: options.pixelate)) }
        if geometry.size != geometry.resultCrop.size { steps.append(.pad(Pad(around: geometry))) }
        if let color = options.background { steps.append(.flatten(Color(color))) }
        if let overlay = self.overlay(on: geometry) { steps.append(.overlay(overlay)) }
        return TransformPipeline(steps)
    }

    /// The watermark at its place on the result.
    private func overlay(on result: ResultGeometry) -> Overlay? {
        guard let watermark, let option = self.options.watermark else { return nil }
        let place = WatermarkGeometry(option, on: result, width: watermark.width, height: watermark.height)
        var overlay = Overlay(watermark, name: "watermark", opacity: option.opacity * self.watermarkOpacity)
        overlay.placement =
            place.isRepeated
            ? .tiled(.center, gapX: Double(place.horizontalGap), gapY: Double(place.verticalGap))
            : .single(.northWest, offsetX: Double(place.box.x), offsetY: Double(place.box.y))
        overlay.scale = option.scale > 0 ? min(1, max(0.0001, option.scale)) : nil
        return overlay
    }
}

extension Crop {
    fileprivate init(_ box: PixelRectangle) {
        self.init(.rectangle(x: box.x, y: box.y, width: box.width, height: box.height))
    }
}

extension Pad {
    /// The canvas and the padding around the image.
    fileprivate init(around result: ResultGeometry) {
        let (image, canvas, padding) = (result.position, result.canvas, result.padding)
        self.init(
            .sides(
                left: image.x + padding.left,
                top: image.y + padding.top,
                right: canvas.width - image.x - image.width + padding.right,
                bottom: canvas.height - image.y - image.height + padding.bottom
            )
        )
    }
}

extension ProcessingOptions {
    /// The text of the options that change pixels.
    fileprivate var renderingText: String {
        var options = ProcessingOptions()
        options.resizingType = self.resizingType
        options.width = self.width
        options.height = self.height
        options.minimumWidth = self.minimumWidth
        options.minimumHeight = self.minimumHeight
        options.horizontalZoom = self.horizontalZoom
        options.verticalZoom = self.verticalZoom
        options.pixelRatio = self.pixelRatio
        options.enlarges = self.enlarges
        options.extend = self.extend
        options.extendAspectRatio = self.extendAspectRatio
        options.gravity = self.gravity
        options.crop = self.crop
        options.padding = self.padding
        options.rotation = self.rotation
        options.flipsHorizontally = self.flipsHorizontally
        options.flipsVertically = self.flipsVertically
        options.background = self.background
        options.blur = self.blur
        options.sharpen = self.sharpen
        options.pixelate = self.pixelate
        options.watermark = self.watermark
        options.limits = self.limits
        // The key of the encoding contains the limit on frames.
        options.limits.frameCount = ProcessingOptions().limits.frameCount
        return options.canonicalText
    }
}
