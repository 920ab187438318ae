// SPDX-License-Identifier: Apache-2.0

import TintypeImage

/// The factors by which an area shrinks to a requested size.
struct ResultScale {
    /// The pixels of the area for each pixel of the resized image.
    private(set) var horizontal: Double
    private(set) var vertical: Double
    /// The pixels of the result for each pixel of the options.
    private(set) var pixelRatio: Double

    init(_ options: ProcessingOptions, area: PixelSize) {
        let (width, height) = (Double(area.width), Double(area.height))
        var (x, y) = Self.fitting(options, area: area)
        x /= options.horizontalZoom
        y /= options.verticalZoom
        var ratio = options.pixelRatio
        if !options.enlarges {
            let smaller = min(x, y)
            if smaller < 1 {
                x /= smaller
                y /= smaller
                // The requested size is too large for the image. A canvas of that size is still possible.
                if !options.extend.isOn { ratio /= smaller }
            }
            ratio = min(ratio, x, y)
        }
        if options.minimumWidth > 0, width / Double(options.minimumWidth) < x {
            let factor = width / Double(options.minimumWidth) / x
            x *= factor
            y *= factor
        }
        if options.minimumHeight > 0, height / Double(options.minimumHeight) < y {
            let factor = height / Double(options.minimumHeight) / y
            x *= factor
            y *= factor
        }
        self.horizontal = min(x / ratio, width)
        self.vertical = min(y / ratio, height)
        self.pixelRatio = ratio
    }

    /// Makes the result smaller.
    mutating func shrink(by factor: Double, area: PixelSize) {
        self.horizontal = min(self.horizontal / factor, Double(area.width))
        self.vertical = min(self.vertical / factor, Double(area.height))
        self.pixelRatio *= factor
    }

    /// Returns the factors for the requested size alone.
    private static func fitting(_ options: ProcessingOptions, area: PixelSize) -> (Double, Double) {
        let x = options.width > 0 ? Double(area.width) / Double(options.width) : 1
        let y = options.height > 0 ? Double(area.height) / Double(options.height) : 1
        guard x != 1 || y != 1, options.resizingType != .force else { return (x, y) }
        if options.width == 0 { return (y, y) }
        if options.height == 0 { return (x, x) }
        let common =
            switch options.resizingType {
            case .fill, .fillDown: min(x, y)
            case .auto: (area.width >= area.height) == (options.width >= options.height) ? min(x, y) : max(x, y)
            case .fit, .force: max(x, y)
            }
        return (common, common)
    }
}
