// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Tables that convert sRGB samples to light and back.
struct LightTables: Sendable {
    static let shared = LightTables()

    /// The light of each sample, scaled to 0...255.
    let samples: [Float]
    /// The smallest light for which each sample is the nearest one.
    let limits: [Float]
    /// The sample at the start of each 1/4096 of the light.
    let nearest: [UInt8]
    /// The sample of each of 65,536 steps of light; the first level spans twenty steps.
    let ofSteps: [UInt8]

    private init() {
        /// Returns the light of a value in the curve of sRGB (IEC 61966-2-1).
        func light(_ value: Double) -> Double {
            value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
        self.samples = (0..<256).map { Float(255 * light(Double($0) / 255)) }
        let limits = [0] + (1..<256).map { Float(255 * light((Double($0) - 0.5) / 255)) } + [.infinity]
        self.limits = limits
        var sample = 0
        self.nearest = (0...4_096).map { part in
            // Subtract a little, because the lookup rounds the index of a light too.
            let begin = Float(part) * 255 / 4_096 * 0.999_999
            while begin >= limits[sample + 1] { sample += 1 }
            return UInt8(sample)
        }
        self.ofSteps = (0..<65_536).map { step in
            let light = Double(step) / 65_535
            let value = light <= 0.003_130_8 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
            return UInt8((value * 255).rounded())
        }
    }
}
