import FoundationEssentials
import TintypeImage

extension WebPContainer {
    /// What the file says about its picture, or `nil` while that is not there yet.
    var header: ImageHeader? {
        guard let size = self.size, let first = self.pictures.first else { return nil }
        var header = ImageHeader(format: .webp, pixelWidth: size.width, pixelHeight: size.height)
        header.orientation = self.orientation
        header.colorProfile = self.colorProfile
        header.givesRows = !self.isAnimated
        header.codecByteCount = self.codecByteCount
        if self.isAnimated {
            header.hasAlpha = self.transparency.isSeen
            header.animation = self.timing
            header.firstFrameCodecByteCount = first.codecByteCount
        } else {
            header.hasAlpha = first.frame.hasAlpha
            header.isScaledByCodec = !first.isLossless
        }
        return header
    }

    /// Why the pictures of a file of `byteCount` bytes can't all be decoded, or `nil`.
    func error(byteCount: Int) -> CodingError? {
        if let damage = self.damage { return .corrupt(.webp, damage) }
        guard self.isComplete(byteCount) else { return .truncated(.webp) }
        return self.pictures.isEmpty ? .corrupt(.webp, "it holds no picture") : nil
    }
}
