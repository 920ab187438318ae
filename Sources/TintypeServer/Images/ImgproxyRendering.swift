// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeImgproxy
import TintypeTransforms

/// The transforms that imgproxy's options stand for, for an image of a known size.
///
/// The size follows imgproxy's arithmetic to the pixel. The loader asks for the transforms when it has read the header of
/// the source, so that a codec that can scale or cut does so while it decodes.
struct ImgproxyRendering: SizedTransformer {
    let options: ProcessingOptions
    /// The image of the watermark, if the options have one and the server has an image for it.
    let watermark: Image?
    /// A factor for the opacity of the watermark.
    let watermarkOpacity: Double
    let light: LightSpace
    let key: String

    /// The number rises whenever other pixels come out, so that entries of earlier versions are not served.
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

    func transforms(for size: PixelSize) throws -> TransformPipeline {
        let options = self.options
        var steps: [ImageTransform] = []
        if options.rotation != 0 { steps.append(.rotate(degrees: Double(options.rotation))) }
        if options.flipsHorizontally { steps.append(.flip(.horizontal)) }
        if options.flipsVertically { steps.append(.flip(.vertical)) }
        // The sizes are those of the image as it is seen in the end.
        let geometry = ResultGeometry(options, sourceWidth: size.width, sourceHeight: size.height)
        if let part = geometry.sourceCrop { steps.append(.crop(Crop(part))) }
        let scaled = geometry.scaledSize
        steps.append(
            .resize(Resize(width: scaled.width, height: scaled.height, mode: .stretch, upscales: true, light: self.light))
        )
        if let part = geometry.resultCrop { steps.append(.crop(Crop(part))) }
        if options.blur > 0 { steps.append(.blur(.gaussian(sigma: options.blur))) }
        if options.sharpen > 0 { steps.append(.sharpen(Sharpen(sigma: options.sharpen))) }
        if options.pixelate > 1 { steps.append(.pixelate(size: options.pixelate)) }
        let background = options.background.map { Color(red: $0.red, green: $0.green, blue: $0.blue) }
        for canvas in geometry.canvases {
            steps.append(.pad(.sides(left: canvas.left, top: canvas.top, right: canvas.right, bottom: canvas.bottom)))
        }
        if let background { steps.append(.flatten(background)) }
        if let overlay = self.overlay(pixelRatio: geometry.pixelRatio) { steps.append(.overlay(overlay)) }
        return TransformPipeline(steps)
    }

    /// The watermark, with its offsets for the result.
    private func overlay(pixelRatio: Double) -> Overlay? {
        guard let watermark, let option = self.options.watermark else { return nil }
        var overlay = Overlay(watermark, name: "watermark", opacity: option.opacity * self.watermarkOpacity)
        let position = option.position
        // Both offsets have one unit: a share below 1, pixels otherwise.
        let isShare = abs(position.x) < 1 && abs(position.y) < 1 && (position.x != 0 || position.y != 0)
        let factor = isShare ? 1 : pixelRatio
        overlay.unit = isShare ? .shares : .pixels
        overlay.placement =
            position.kind == .tile
            ? .tiled(gapX: position.x * factor, gapY: position.y * factor)
            : .single(Gravity(position.kind), offsetX: position.x * factor, offsetY: position.y * factor)
        overlay.scale = option.scale > 0 ? min(1, option.scale) : nil
        return overlay
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
        options.limits.resultSide = self.limits.resultSide
        return options.canonicalText
    }
}

extension Gravity {
    fileprivate init(_ kind: GravityOption.Kind) {
        self =
            switch kind {
            case .north: .north
            case .south: .south
            case .east: .east
            case .west: .west
            case .northEast: .northEast
            case .northWest: .northWest
            case .southEast: .southEast
            case .southWest: .southWest
            case .center, .focusPoint, .smart, .tile: .center
            }
    }
}
