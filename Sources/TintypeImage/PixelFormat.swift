/// How the samples of a pixel lie in memory.
///
/// Samples are 8 bits, in sRGB unless the picture carries a profile. Alpha is straight, not
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

    /// What each plane holds, in order; interleaved formats have one plane.
    var planes: [PlaneFormat] {
        [PlaneFormat(bytesPerPixel: self.channelCount, horizontalSubsampling: 1, verticalSubsampling: 1)]
    }

    public var description: String {
        switch self.value {
        case .gray8: "gray8"
        case .rgb8: "rgb8"
        case .rgba8: "rgba8"
        }
    }
}

/// The share of a picture that one plane holds.
struct PlaneFormat: Sendable, Hashable {
    let bytesPerPixel: Int
    /// Pixels of the picture for each sample of the plane, across.
    let horizontalSubsampling: Int
    /// Pixels of the picture for each sample of the plane, down.
    let verticalSubsampling: Int
}
