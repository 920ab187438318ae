// SPDX-License-Identifier: Apache-2.0

#if !LittleCMS
import FoundationEssentials
import TintypeImage

/// A conversion to sRGB, which a build without the trait `LittleCMS` cannot make.
final class ColorTransform: Sendable {
    /// The source and target of a conversion.
    enum Samples: Hashable {
        /// Pixels, converted to pixels of the same format.
        case pixels(PixelFormat)
        /// Four samples that say how much light each ink leaves, converted to red, green and blue.
        case inks
    }

    /// Returns `nil`: samples are treated as sRGB, whatever their profile says.
    init?(profile: Data, of samples: Samples, intent: ColorHandling.Intent) {
        return nil
    }

    /// Returns the same samples.
    func apply(to pixels: PixelBuffer) throws -> PixelBuffer { pixels }

    /// Does nothing.
    func convert(_ inks: UnsafeRawBufferPointer, to pixels: UnsafeMutableRawBufferPointer, count: Int) {}
}

/// The head of an embedded profile.
struct LittleCMSProfile {
    private let model: Data

    /// Reads the colour space of an embedded profile; `nil` if the bytes are no profile.
    ///
    /// Source: ICC.1:2022, 7.2.6 and 7.2.9.
    init?(_ data: Data) {
        guard data.has("acsp", at: 36) else { return nil }
        self.model = data.dropFirst(16).prefix(4)
    }

    /// Returns whether an embedded profile is for samples of a format; `false` if it is broken.
    static func matches(_ data: Data, _ format: PixelFormat) -> Bool {
        LittleCMSProfile(data)?.model == Data((format == .gray8 ? "GRAY" : "RGB ").utf8)
    }

    /// Whether the profile is for red, green and blue.
    var isRGB: Bool { self.model == Data("RGB ".utf8) }
}

extension ImageHeader {
    /// The name that the embedded profile gives itself: always `nil` without the trait `LittleCMS`.
    public var colorProfileDescription: String? { nil }
}
#endif
