import FoundationEssentials
import TintypeDownloading
import TintypeImage

/// What happens on the way to a picture.
enum LoadUpdate: Sendable {
    case progress(TransferProgress)
    case preview(Image)
    case cached(ImageResponse)
}

/// What happens on the way to bytes.
enum SourceUpdate: Sendable {
    case progress(TransferProgress)
    case bytes(Data)
}
