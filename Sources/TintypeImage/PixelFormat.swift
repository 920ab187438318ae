// SPDX-License-Identifier: Apache-2.0

/// How the samples of a pixel lie in memory.
///
/// Samples are 8 bits, in sRGB unless the image carries a profile. Alpha is straight, not
/// premultiplied.
public struct PixelFormat: Sendable, Hashable, CustomStringConvertible {
    private enum Value: Sendable {
        case gray8
        case rgb8
        case rgba8
    }

    private let value: Value

    /// One gray sample a pixel.
    public static let gray8 = PixelFormat(value: .gray8)
    /// Red, green, blue.
    public static let rgb8 = PixelFormat(value: .rgb8)
    /// Red, green, blue, straight alpha.
    public static let rgba8 = PixelFormat(value: .rgba8)

    /// Whether the format has an alpha sample.
    public var hasAlpha: Bool { self.value == .rgba8 }

    /// The samples of one pixel, alpha included.
    public var channelCount: Int {
        switch self.value {
        case .gray8: 1
        case .rgb8: 3
        case .rgba8: 4
        }
    }

    public var description: String {
        switch self.value {
        case .gray8: "gray8"
        case .rgb8: "rgb8"
        case .rgba8: "rgba8"
        }
    }
}
