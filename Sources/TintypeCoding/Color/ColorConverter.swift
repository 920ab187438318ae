import FoundationEssentials
import TintypeConcurrency
import TintypeImage

/// Converts samples from embedded profiles to sRGB, with Little CMS.
///
/// A transform takes milliseconds to build, so the last few are kept.
final class ColorConverter: Sendable {
    /// The converter that all decodes share.
    static let shared = ColorConverter()

    /// The work of converting a pixel, at most: through a table of three dimensions.
    static let unitsPerPixel = 4

    private static let transformLimit = 16
    /// Real profiles have kilobytes; what is larger is not kept and not used.
    private static let profileLimit = 4 << 20

    private struct Key: Hashable {
        /// The bytes; an array, which a leak checker can follow from a static value.
        let profile: [UInt8]
        let format: PixelFormat
        let intent: ColorHandling.Intent
    }

    private struct State {
        /// The transforms, the last used last; `nil` where nothing is to be converted.
        var transforms: [(key: Key, transform: ColorTransform?)] = []
    }

    private let state = Locked(State())

    /// The samples in sRGB; the same buffer where the profile is sRGB, broken, or not one for
    /// pictures of this kind.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    func convert(_ pixels: PixelBuffer, from profile: Data, intent: ColorHandling.Intent) throws -> PixelBuffer {
        guard profile.count <= Self.profileLimit else { return pixels }
        if let transform = self.transform(for: Key(profile: Array(profile), format: pixels.format, intent: intent)) {
            return try transform.apply(to: pixels)
        }
        // Gray pictures should have gray profiles; some have their camera's.
        guard pixels.format == .gray8, LittleCMSProfile(profile)?.isRGB == true else { return pixels }
        return try self.convert(try pixels.expandedFromGray(), from: profile, intent: intent)
    }

    private func transform(for key: Key) -> ColorTransform? {
        let known = self.state.withLock { state -> ColorTransform?? in
            guard let index = state.transforms.lastIndex(where: { $0.key == key }) else { return .none }
            let entry = state.transforms.remove(at: index)
            state.transforms.append(entry)
            return .some(entry.transform)
        }
        if let known { return known }
        // Built outside the lock; two lanes may build the same one, and the later one is kept.
        let transform = ColorTransform(profile: Data(key.profile), format: key.format, intent: key.intent)
        self.state.withLock { state in
            state.transforms.removeAll { $0.key == key }
            if state.transforms.count >= Self.transformLimit { state.transforms.removeFirst() }
            state.transforms.append((key, transform))
        }
        return transform
    }
}
