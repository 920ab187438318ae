import CPixelKernels
import TintypeImage

/// How colours that are drawn go together with those that are there.
///
/// Source: W3C Compositing and Blending Level 1: sections 9.1 (compositing) and 10 (blending). The names are those of CSS.
public enum BlendMode: String, Sendable, Hashable, Codable, CaseIterable {
    /// What is drawn covers what is there.
    case sourceOver = "source-over"
    /// What is drawn, where something is there; nothing else.
    case sourceIn = "source-in"
    /// What is drawn covers what is there, and is not seen beside it.
    case sourceAtop = "source-atop"
    /// What is there covers what is drawn.
    case destinationOver = "destination-over"
    /// The product: never brighter than either.
    case multiply
    /// The product of the opposites: never darker than either.
    case screen
    /// Multiply where the backdrop is dark, screen where it is bright.
    case overlay
    /// The darker of each sample.
    case darken
    /// The brighter of each sample.
    case lighten
    /// Brightens the backdrop to reflect what is drawn.
    case colorDodge = "color-dodge"
    /// Darkens the backdrop to reflect what is drawn.
    case colorBurn = "color-burn"
    /// Multiply where what is drawn is dark, screen where it is bright.
    case hardLight = "hard-light"
    /// As a soft light that shines on the backdrop.
    case softLight = "soft-light"
    /// How far the two are apart.
    case difference
    /// As difference, with less contrast.
    case exclusion
    /// The hue of what is drawn, with the saturation and the luminosity of the backdrop.
    case hue
    /// The saturation of what is drawn, with the hue and the luminosity of the backdrop.
    case saturation
    /// The hue and the saturation of what is drawn, with the luminosity of the backdrop.
    case color
    /// The luminosity of what is drawn, with the hue and the saturation of the backdrop.
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

/// A blend mode, and what is seen of either side where it is alone.
package struct Composition {
    private let mode: BlendMode
    private let keepsSource: Bool
    private let keepsBackdrop: Bool

    /// What the mode says; the modes that mix colours keep both sides where they are alone.
    package static func drawing(_ mode: BlendMode) -> Composition {
        Composition(
            mode: mode,
            keepsSource: mode != .sourceIn && mode != .sourceAtop,
            keepsBackdrop: mode != .sourceIn
        )
    }

    /// The same, but for the modes that mix colours: what is clear stays clear.
    package static func tinting(_ mode: BlendMode) -> Composition {
        let drawing = Self.drawing(mode)
        let covers = mode == .sourceOver || mode == .destinationOver
        return Composition(mode: mode, keepsSource: covers, keepsBackdrop: drawing.keepsBackdrop)
    }

    /// What an image of `format` becomes when `color` is drawn over all of it; `nil` where nothing changes.
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

    /// Draws planes over others of `stride` numbers each, in place; the source's alpha counts times `opacity`.
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
