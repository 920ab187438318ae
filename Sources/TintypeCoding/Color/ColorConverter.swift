// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeImage

/// Converts samples from embedded profiles to sRGB, with Little CMS.
///
/// Building a transform takes milliseconds, so the converter keeps the last ones.
package final class ColorConverter: Sendable {
    /// The converter that all decodes share.
    static let shared = ColorConverter()

    /// The most work for converting a pixel, through a table of three dimensions.
    package static let unitsPerPixel = 4

    private static let transformLimit = 16
    /// Real profiles have kilobytes; larger ones than this are ignored.
    private static let profileLimit = 4 << 20

    private struct Key: Hashable {
        /// The bytes, as an array, which a leak checker can follow from a static value.
        let profile: [UInt8]
        let samples: ColorTransform.Samples
        let intent: ColorHandling.Intent
    }

    private struct State {
        /// The transforms, least recently used first; `nil` if no conversion is needed.
        var transforms: [(key: Key, transform: ColorTransform?)] = []
    }

    private let state = Locked(State())

    /// Returns the samples in sRGB, or the same buffer if no conversion is needed or possible.
    ///
    /// The profile may be sRGB, broken, or not meant for images of this kind.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    func convert(_ pixels: PixelBuffer, from profile: Data, intent: ColorHandling.Intent) throws -> PixelBuffer {
        guard profile.count <= Self.profileLimit else { return pixels }
        if let transform = self.transform(of: .pixels(pixels.format), profile, intent: intent) {
            return try transform.apply(to: pixels)
        }
        // Gray images should have gray profiles, but some have the RGB profile of their camera.
        guard pixels.format == .gray8, LittleCMSProfile(profile)?.isRGB == true else { return pixels }
        return try self.convert(try pixels.converted(to: .rgb8), from: profile, intent: intent)
    }

    /// Returns the transform for samples with a profile; `nil` if no conversion is needed or possible.
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
        // Build outside the lock. Two lanes may build the same transform, and the later one stays.
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
    /// Returns these options with the profile of `image`, which describes its samples, unless they already have a
    /// profile.
    func keepingProfile(of image: Image) -> EncodeOptions {
        guard self.metadata.colorProfile == nil, let profile = image.colorProfile else { return self }
        var options = self
        options.metadata.colorProfile = profile.data
        return options
    }
}

extension Image {
    /// Returns the image in sRGB, for a format that cannot store a profile.
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
    /// Returns the animation in sRGB, because its frames may have different profiles and a file has only one.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    func inSRGB() throws -> AnimationContent {
        guard self.frames.contains(where: { $0.image.colorProfile != nil }) else { return self }
        let frames = try self.frames.map { Frame(image: try $0.image.inSRGB(), milliseconds: $0.milliseconds) }
        return AnimationContent(frames: frames, loopCount: self.loopCount)
    }
}
