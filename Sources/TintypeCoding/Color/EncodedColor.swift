import FoundationEssentials
import TintypeImage

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
    /// The picture in sRGB, for a format that can't say what its samples mean.
    ///
    /// - Throws: `ImageError` when memory runs out, `CancellationError`.
    func inSRGB() throws -> Image {
        guard let profile = self.colorProfile else { return self }
        let pixels = try ColorConverter.shared.convert(self.pixels, from: profile.data, intent: .relativeColorimetric)
        return Image(pixels: pixels, orientation: self.orientation, sourceFormat: self.sourceFormat)
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
