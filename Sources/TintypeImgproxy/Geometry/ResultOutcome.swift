// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The sizes and places after the resize.
struct ResultOutcome {
    let scaled: PixelSize
    let crop: PixelRectangle
    let canvas: PixelSize
    let position: PixelRectangle
    let padding: PaddingOption

    init(_ options: ProcessingOptions, area: PixelSize, scale: ResultScale) {
        let ratio = scale.pixelRatio
        self.scaled = PixelSize(
            width: max(1, Rounding.nearest(Double(area.width) / scale.horizontal)),
            height: max(1, Rounding.nearest(Double(area.height) / scale.vertical))
        )
        let width = Self.target(options.width, ratio * options.horizontalZoom)
        let height = Self.target(options.height, ratio * options.verticalZoom)

        let size = Self.cropped(self.scaled, toWidth: width, height: height, options)
        self.crop = options.gravity.place(size, in: self.scaled, pixelRatio: ratio)

        var canvas = size
        var position = PixelRectangle(x: 0, y: 0, width: size.width, height: size.height)
        if options.extend.isOn {
            canvas = PixelSize(width: max(size.width, width ?? 0), height: max(size.height, height ?? 0))
            position = options.extend.gravity.place(size, in: canvas, pixelRatio: ratio)
        }
        if options.extendAspectRatio.isOn, let width, let height {
            let wider = Self.extended(canvas, toWidth: width, height: height)
            let place = options.extendAspectRatio.gravity.place(canvas, in: wider, pixelRatio: ratio)
            canvas = wider
            position = PixelRectangle(
                x: position.x + place.x,
                y: position.y + place.y,
                width: size.width,
                height: size.height
            )
        }
        self.canvas = canvas
        self.position = position
        func pixels(_ width: Int) -> Int { Rounding.even(Double(width) * ratio) }
        self.padding = PaddingOption(
            top: pixels(options.padding.top),
            right: pixels(options.padding.right),
            bottom: pixels(options.padding.bottom),
            left: pixels(options.padding.left)
        )
    }

    /// The size of the result.
    var size: PixelSize { self.canvas.padded(self.padding) }

    /// Returns a side of the requested size in pixels; `nil` if it is free.
    private static func target(_ side: Int, _ factor: Double) -> Int? {
        // A tiny ratio must not free the side.
        side == 0 ? nil : max(1, Rounding.nearest(Double(side) * factor))
    }

    private static func cropped(
        _ scaled: PixelSize,
        toWidth width: Int?,
        height: Int?,
        _ options: ProcessingOptions
    ) -> PixelSize {
        if options.resizingType == .fillDown, !options.enlarges, let width, let height {
            let x = Double(width) / Double(scaled.width)
            let y = Double(height) / Double(scaled.height)
            // The image is too small. Keep the largest part with the requested aspect ratio.
            if x > y, x > 1 {
                let side = Rounding.nearest(Double(scaled.width) * Double(height) / Double(width))
                return PixelSize(width: scaled.width, height: min(max(side, 1), scaled.height))
            }
            if y > x, y > 1 {
                let side = Rounding.nearest(Double(scaled.height) * Double(width) / Double(height))
                return PixelSize(width: min(max(side, 1), scaled.width), height: scaled.height)
            }
        }
        return PixelSize(
            width: min(width ?? scaled.width, scaled.width),
            height: min(height ?? scaled.height, scaled.height)
        )
    }

    /// Returns a size with one side longer, so that it has an aspect ratio.
    private static func extended(_ size: PixelSize, toWidth width: Int, height: Int) -> PixelSize {
        let x = Double(width) / Double(size.width)
        let y = Double(height) / Double(size.height)
        if y > x {
            let side = Rounding.nearest(Double(size.width) * Double(height) / Double(width))
            return PixelSize(width: size.width, height: max(side, size.height))
        }
        if x > y {
            let side = Rounding.nearest(Double(size.height) * Double(width) / Double(height))
            return PixelSize(width: max(side, size.width), height: size.height)
        }
        return size
    }
}
