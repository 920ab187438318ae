import FoundationEssentials
import TintypeImage

extension WebPContainer {
    /// What the file says about its picture, or `nil` while that is not there yet.
    var header: ImageHeader? {
        guard let size = self.size, let first = self.pictures.first else { return nil }
        var header = ImageHeader(format: .webp, pixelWidth: size.width, pixelHeight: size.height)
        header.orientation = self.orientation
        header.colorProfile = self.colorProfile
        header.hasAlpha = self.isAnimated ? self.transparency.isSeen : first.frame.hasAlpha
        if self.isAnimated { header.animation = self.timing }
        return header
    }

    /// Why the pictures of a file of `byteCount` bytes can't all be decoded, or `nil`.
    func error(byteCount: Int) -> CodingError? {
        if let damage = self.damage { return .corrupt(.webp, damage) }
        guard self.isComplete(byteCount) else { return .truncated(.webp) }
        return self.pictures.isEmpty ? .corrupt(.webp, "it holds no picture") : nil
    }
}
