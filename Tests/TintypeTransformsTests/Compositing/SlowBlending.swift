// SPDX-License-Identifier: Apache-2.0

import TintypeTransforms

/// Blending by the formulas of W3C Compositing and Blending Level 1.
///
/// Uses double precision and straight colours from 0 to 1.
enum SlowBlending {
    typealias Pixel = (color: [Double], alpha: Double)

    /// Returns the source drawn over the backdrop (sections 5 and 9).
    static func drawn(_ source: Pixel, over backdrop: Pixel, _ mode: BlendMode) -> Pixel {
        let mixed = self.mixed(mode, backdrop.color, source.color)
        let (factorOfSource, factorOfBackdrop) =
            switch mode {
            case .sourceIn: (backdrop.alpha, 0.0)
            case .sourceAtop: (backdrop.alpha, 1 - source.alpha)
            case .destinationOver: (1 - backdrop.alpha, 1.0)
            default: (1.0, 1 - source.alpha)
            }
        let alpha = source.alpha * factorOfSource + backdrop.alpha * factorOfBackdrop
        let color = (0..<3).map { channel in
            // The source only mixes with the covered part of the backdrop.
            let own = (1 - backdrop.alpha) * source.color[channel] + backdrop.alpha * mixed[channel]
            let sum =
                source.alpha * factorOfSource * own
                + backdrop.alpha * factorOfBackdrop * backdrop.color[channel]
            return alpha == 0 ? 0 : sum / alpha
        }
        return (color, alpha)
    }

    /// Returns the blend function B(Cb, Cs) (section 10).
    static func mixed(_ mode: BlendMode, _ backdrop: [Double], _ source: [Double]) -> [Double] {
        switch mode {
        case .hue:
            self.setLum(self.setSat(source, self.sat(backdrop)), self.lum(backdrop))
        case .saturation:
            self.setLum(self.setSat(backdrop, self.sat(source)), self.lum(backdrop))
        case .color: self.setLum(source, self.lum(backdrop))
        case .luminosity: self.setLum(backdrop, self.lum(source))
        default: zip(backdrop, source).map { self.mixed(mode, $0, $1) }
        }
    }

    private static func mixed(_ mode: BlendMode, _ backdrop: Double, _ source: Double) -> Double {
        switch mode {
        case .multiply: return backdrop * source
        case .screen: return 1 - (1 - backdrop) * (1 - source)
        case .overlay: return self.mixed(.hardLight, source, backdrop)
        case .darken: return min(backdrop, source)
        case .lighten: return max(backdrop, source)
        case .colorDodge:
            if backdrop == 0 { return 0 }
            return source == 1 ? 1 : min(1, backdrop / (1 - source))
        case .colorBurn:
            if backdrop == 1 { return 1 }
            return source == 0 ? 0 : 1 - min(1, (1 - backdrop) / source)
        case .hardLight:
            return source <= 0.5
                ? self.mixed(.multiply, backdrop, 2 * source) : self.mixed(.screen, backdrop, 2 * source - 1)
        case .softLight:
            if source <= 0.5 { return backdrop - (1 - 2 * source) * backdrop * (1 - backdrop) }
            let curve =
                backdrop <= 0.25 ? ((16 * backdrop - 12) * backdrop + 4) * backdrop : backdrop.squareRoot()
            return backdrop + (2 * source - 1) * (curve - backdrop)
        case .difference: return abs(backdrop - source)
        case .exclusion: return backdrop + source - 2 * backdrop * source
        default: return source
        }
    }

    private static func lum(_ color: [Double]) -> Double { 0.3 * color[0] + 0.59 * color[1] + 0.11 * color[2] }

    private static func sat(_ color: [Double]) -> Double { (color.max() ?? 0) - (color.min() ?? 0) }

    private static func clipColor(_ color: [Double]) -> [Double] {
        let light = self.lum(color)
        var color = color
        if let least = color.min(), least < 0 {
            color = color.map { light + (($0 - light) * light) / (light - least) }
        }
        if let most = color.max(), most > 1 {
            color = color.map { light + (($0 - light) * (1 - light)) / (most - light) }
        }
        return color
    }

    private static func setLum(_ color: [Double], _ light: Double) -> [Double] {
        let step = light - self.lum(color)
        return self.clipColor(color.map { $0 + step })
    }

    private static func setSat(_ color: [Double], _ saturation: Double) -> [Double] {
        let order = color.indices.sorted { color[$0] < color[$1] }
        let (least, middle, most) = (order[0], order[1], order[2])
        var result = [0.0, 0, 0]
        if color[most] > color[least] {
            result[middle] = (color[middle] - color[least]) * saturation / (color[most] - color[least])
            result[most] = saturation
        }
        return result
    }
}
