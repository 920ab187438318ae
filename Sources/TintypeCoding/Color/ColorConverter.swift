import FoundationEssentials
import TintypeConcurrency
import TintypeImage

/// Converts samples from embedded profiles to sRGB, with Little CMS.
///
/// A transform takes milliseconds to build, so the last few are kept.
package final class ColorConverter: Sendable {
    /// The converter that all decodes share.
    static let shared = ColorConverter()

    /// The work of converting a pixel, at most: through a table of three dimensions.
    package static let unitsPerPixel = 4

    private static let transformLimit = 16
    /// Real profiles have kilobytes; what is larger is not kept and not used.
    private static let profileLimit = 4 << 20

    private struct Key: Hashable {
        /// The bytes; an array, which a leak checker can follow from a static value.
        let profile: [UInt8]
        let samples: ColorTransform.Samples
        let intent: ColorHandling.Intent
    }

    private struct State {
        /// The transforms, the last used last; `nil` where nothing is to be converted.
        var transforms: [(key: Key, transform: ColorTransform?)] = []
    }

    private let state = Locked(State())

    /// The samples in sRGB; the same buffer where the profile is sRGB, broken, or not one for
    /// images of this kind.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    func convert(_ pixels: PixelBuffer, from profile: Data, intent: ColorHandling.Intent) throws -> PixelBuffer {
        guard profile.count <= Self.profileLimit else { return pixels }
        if let transform = self.transform(of: .pixels(pixels.format), profile, intent: intent) {
            return try transform.apply(to: pixels)
        }
        // Gray images should have gray profiles; some have their camera's.
        guard pixels.format == .gray8, LittleCMSProfile(profile)?.isRGB == true else { return pixels }
        return try self.convert(try pixels.converted(to: .rgb8), from: profile, intent: intent)
    }

    /// What converts samples by a profile; `nil` where nothing is to be converted.
    func transform(
        of samples: ColorTransform.Samples,
        _ profile: Data,
        intent: ColorHandling.Intent
    ) -> ColorTransform? {
        let key = Key(profile: Array(profile), samples: samples, intent: intent)
        let known = self.state.withLock { state -> ColorTransform?? in
            guard let index = state.transforms.lastIndex(where: { $0.key == key }) else { return .none }
            let entry = state.transforms.remove(at: index)
            state.transforms.append(entry)
            return .some(entry.transform)
        }
        if let known { return known }
        // Built outside the lock; two lanes may build the same one, and the later one is kept.
        let transform = ColorTransform(profile: profile, of: samples, intent: intent)
        self.state.withLock { state in
            state.transforms.removeAll { $0.key == key }
            if state.transforms.count >= Self.transformLimit { state.transforms.removeFirst() }
            state.transforms.append((key, transform))
        }
        return transform
    }
}

extension EncodeOptions {
    /// These options with the profile of `image`, unless they name one: its samples are in that colour space.
    func keepingProfile(of image: Image) -> EncodeOptions {
        guard self.metadata.colorProfile == nil, let profile = image.colorProfile else { return self }
        var options = self
        options.metadata.colorProfile = profile.data
        return options
    }
}

extension Image {
    /// The image in sRGB, for a format that can't say what its samples mean.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    func inSRGB() throws -> Image {
        guard let profile = self.colorProfile else { return self }
        let pixels = try ColorConverter.shared.convert(self.pixels, from: profile.data, intent: .relativeColorimetric)
        return Image(
            pixels: pixels,
            orientation: self.orientation,
            sourceFormat: self.sourceFormat,
            scale: self.scale,
            damage: self.damage
        )
    }
}

extension AnimationContent {
    /// The animation in sRGB: frames may have profiles that differ, and a file has one.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    func inSRGB() throws -> AnimationContent {
        guard self.frames.contains(where: { $0.image.colorProfile != nil }) else { return self }
        let frames = try self.frames.map { Frame(image: try $0.image.inSRGB(), milliseconds: $0.milliseconds) }
        return AnimationContent(frames: frames, loopCount: self.loopCount)
    }
}
