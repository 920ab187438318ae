// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// An image as a value: shared, immutable pixels and what is known about them.
///
/// Copying is free. Pixels are upright and in sRGB unless the decode options said otherwise.
public struct Image: Sendable {
    /// The pixels.
    public let pixels: PixelBuffer
    /// The turn that is still to be applied: `.up` unless the decode options kept the stored frame.
    public let orientation: Orientation
    /// Whether the image is unfinished: more of its bytes were to come when it was made.
    public let isPreview: Bool
    /// The damage that the decoder found in the data of the image and continued after; empty for an intact file.
    public let damage: ImageDamage
    /// Stands beside the orientation, and is not a `Double`: a value of four words is returned in registers, and hits
    /// in memory return this one.
    private let scaleBits: UInt32
    /// The encoded format that the image came from, or `nil` for one made in memory.
    public let sourceFormat: ImageFormat?
    /// The profile of the pixels, or `nil` for sRGB.
    public let colorProfile: ColorProfile?

    /// The pixels for each point of a layout, 2 for an image that is called `@2x`; default 1, kept as a `Float`.
    ///
    /// It changes no pixel.
    public var scale: Double { Double(Float(bitPattern: self.scaleBits)) }

    /// Wraps pixels as an image.
    ///
    /// ```swift
    /// let pixels = try PixelBuffer(PixelLayout(format: .gray8, width: 64, height: 64)) { _ in }
    /// let black = Image(pixels: pixels)
    /// ```
    public init(
        pixels: PixelBuffer,
        orientation: Orientation = .up,
        sourceFormat: ImageFormat? = nil,
        colorProfile: ColorProfile? = nil,
        scale: Double = 1,
        isPreview: Bool = false,
        damage: ImageDamage = []
    ) {
        self.pixels = pixels
        self.orientation = orientation
        self.isPreview = isPreview
        self.damage = damage
        self.sourceFormat = sourceFormat
        self.colorProfile = colorProfile
        self.scaleBits = Float(scale).bitPattern
    }

    /// The width in pixels.
    public var width: Int { self.pixels.width }
    /// The height in pixels.
    public var height: Int { self.pixels.height }
    /// Whether the pixels have an alpha sample.
    public var hasAlpha: Bool { self.pixels.format.hasAlpha }

    /// The same image with other pixels, which are upright.
    ///
    /// ```swift
    /// let pixels = try PixelBuffer(image.pixels.layout) { _ in }
    /// let blank = image.replacingPixels(pixels, orientation: .up)
    /// ```
    public func replacingPixels(_ pixels: PixelBuffer, orientation: Orientation) -> Image {
        self.replacing(pixels: pixels, orientation: orientation)
    }

    /// The same image, which is unfinished.
    ///
    /// ```swift
    /// let preview = image.markedAsPreview()
    /// print(preview.isPreview)  // true
    /// ```
    public func markedAsPreview() -> Image { self.replacing(isPreview: true) }

    /// The same image whose samples are in the colour space of `profile`.
    ///
    /// ```swift
    /// let profile = ColorProfile(data: try Data(contentsOf: URL(filePath: "/usr/share/color/icc/sRGB.icc")))
    /// let tagged = image.tagged(with: profile)
    /// ```
    public func tagged(with profile: ColorProfile) -> Image { self.replacing(colorProfile: profile) }

    /// The same image with another scale.
    ///
    /// ```swift
    /// let retina = image.replacingScale(2)
    /// ```
    public func replacingScale(_ scale: Double) -> Image { self.replacing(scale: scale) }

    private func replacing(
        pixels: PixelBuffer? = nil,
        orientation: Orientation? = nil,
        colorProfile: ColorProfile? = nil,
        scale: Double? = nil,
        isPreview: Bool? = nil
    ) -> Image {
        Image(
            pixels: pixels ?? self.pixels,
            orientation: orientation ?? self.orientation,
            sourceFormat: self.sourceFormat,
            colorProfile: colorProfile ?? self.colorProfile,
            scale: scale ?? self.scale,
            isPreview: isPreview ?? self.isPreview,
            damage: self.damage
        )
    }

    /// Whether any pixel is not opaque; looks at every pixel of an image with alpha.
    public var hasTransparency: Bool {
        guard self.hasAlpha else { return false }
        let plane = self.pixels.layout.planes[0]
        return self.pixels.withUnsafeBytes { bytes in
            (0..<plane.height).contains { row in
                let start = row * plane.bytesPerRow
                return stride(from: start + 3, to: start + plane.usedBytesPerRow, by: 4).contains { bytes[$0] != 255 }
            }
        }
    }
}

/// An embedded ICC profile, kept because it was asked for.
///
/// A class, so that an image stays small: most have none.
public final class ColorProfile: Sendable {
    /// The profile as stored, in the format of ICC.1.
    public let data: Data

    /// Wraps the bytes of a profile.
    ///
    /// A slice is copied: it would keep the whole file that it was cut from.
    ///
    /// ```swift
    /// let profile = ColorProfile(data: try Data(contentsOf: URL(filePath: "/usr/share/color/icc/sRGB.icc")))
    /// ```
    public init(data: Data) {
        self.data = data.startIndex == 0 ? data : data.withUnsafeBytes { Data($0) }
    }
}

extension Image: CustomStringConvertible {
    /// The size and what is unusual, such as `jpeg 640x480` and `320x240 gray8, preview`.
    public var description: String {
        var text = "\(self.width)x\(self.height)"
        if let format = self.sourceFormat { text = "\(format) \(text)" }
        if self.pixels.format != .rgb8 { text += " \(self.pixels.format)" }
        if self.orientation != .up { text += ", stored with orientation \(self.orientation.rawValue)" }
        if self.colorProfile != nil { text += ", with a profile of its own" }
        if self.isPreview { text += ", preview" }
        if !self.damage.isEmpty { text += ", damaged (\(self.damage))" }
        return text
    }
}
