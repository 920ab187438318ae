// SPDX-License-Identifier: Apache-2.0

import CTintypePixelKernels
import TintypeImage

/// How a source that is drawn is combined with the backdrop under it.
///
/// Source: W3C Compositing and Blending Level 1, sections 9.1 (compositing) and 10 (blending). CSS uses the same
/// names.
public enum BlendMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// The source covers the backdrop.
    case sourceOver = "source-over"
    /// Only the source, and only inside the backdrop.
    case sourceIn = "source-in"
    /// The source covers the backdrop, and is invisible outside it.
    case sourceAtop = "source-atop"
    /// The backdrop covers the source.
    case destinationOver = "destination-over"
    /// The product: never brighter than either.
    case multiply
    /// The opposite of the product of the opposites: never darker than either.
    case screen
    /// Multiplies if the backdrop is dark, and screens if it is bright.
    case overlay
    /// The darker of each sample.
    case darken
    /// The brighter of each sample.
    case lighten
    /// Brightens the backdrop to reflect the source.
    case colorDodge = "color-dodge"
    /// Darkens the backdrop to reflect the source.
    case colorBurn = "color-burn"
    /// Multiplies if the source is dark, and screens if it is bright.
    case hardLight = "hard-light"
    /// Lights the backdrop softly with the source.
    case softLight = "soft-light"
    /// The absolute difference of the two.
    case difference
    /// Like `difference`, with less contrast.
    case exclusion
    /// The hue of the source, with the saturation and the luminosity of the backdrop.
    case hue
    /// The saturation of the source, with the hue and the luminosity of the backdrop.
    case saturation
    /// The hue and the saturation of the source, with the luminosity of the backdrop.
    case color
    /// The luminosity of the source, with the hue and the saturation of the backdrop.
    case luminosity

    fileprivate var mixing: cpixels_mixing {
        switch self {
        case .sourceOver, .sourceIn, .sourceAtop: cpixels_mixing_source
        case .destinationOver: cpixels_mixing_backdrop
        case .multiply: cpixels_mixing_multiply
        case .screen: cpixels_mixing_screen
        case .overlay: cpixels_mixing_overlay
        case .darken: cpixels_mixing_darken
        case .lighten: cpixels_mixing_lighten
        case .colorDodge: cpixels_mixing_color_dodge
        case .colorBurn: cpixels_mixing_color_burn
        case .hardLight: cpixels_mixing_hard_light
        case .softLight: cpixels_mixing_soft_light
        case .difference: cpixels_mixing_difference
        case .exclusion: cpixels_mixing_exclusion
        case .hue: cpixels_mixing_hue
        case .saturation: cpixels_mixing_saturation
        case .color: cpixels_mixing_color
        case .luminosity: cpixels_mixing_luminosity
        }
    }
}

/// A blend mode, and whether each side stays visible outside the other.
package struct Composition {
    private let mode: BlendMode
    private let keepsSource: Bool
    private let keepsBackdrop: Bool

    /// Returns the composition of the mode; modes that mix colours keep both sides outside the other.
    package static func drawing(_ mode: BlendMode) -> Composition {
        Composition(
            mode: mode,
            keepsSource: mode != .sourceIn && mode != .sourceAtop,
            keepsBackdrop: mode != .sourceIn
        )
    }

    /// Returns the composition for a tint: clear pixels stay clear, except with `sourceOver` and `destinationOver`.
    package static func tinting(_ mode: BlendMode) -> Composition {
        let drawing = Self.drawing(mode)
        let covers = mode == .sourceOver || mode == .destinationOver
        return Composition(mode: mode, keepsSource: covers, keepsBackdrop: drawing.keepsBackdrop)
    }

    /// Returns the format after `color` is drawn over an image of `format`, or `nil` if the drawing changes nothing.
    func result(ofDrawing color: Color, over format: PixelFormat) -> PixelFormat? {
        if color.alpha == 0, self.keepsBackdrop { return nil }
        if self.mode == .destinationOver, !format.hasAlpha { return nil }
        if self.keepsSource, color.alpha == 255 { return format.hasAlpha ? .rgb8 : self.colors(format, color) }
        if format.hasAlpha || (!self.keepsBackdrop && color.alpha < 255) { return .rgba8 }
        return self.colors(format, color)
    }

    private func colors(_ format: PixelFormat, _ color: Color) -> PixelFormat {
        let isGray = color.red == color.green && color.green == color.blue
        return format == .gray8 && !isGray ? .rgb8 : format
    }

    /// Draws source planes over backdrop planes, in place, with the source's alpha multiplied by `opacity`.
    ///
    /// Each plane begins `stride` numbers after the one before it.
    func draw(
        _ source: UnsafePointer<Float>,
        over backdrop: UnsafeMutablePointer<Float>,
        opacity: Double = 1,
        stride: Int,
        count: Int
    ) {
        cpixels_blend(
            self.mode.mixing,
            self.keepsSource ? 1 : 0,
            self.keepsBackdrop ? 1 : 0,
            Float(opacity),
            source,
            backdrop,
            stride,
            count
        )
    }
}
