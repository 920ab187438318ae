public import TintypeDownloading
public import TintypeImage

/// What happens during a load, in order; the last event is ``finished(_:)``.
public enum LoadEvent: Sendable {
    /// More bytes have arrived.
    case progress(TransferProgress)
    /// An unfinished picture that is worth showing.
    case preview(Image)
    /// The picture that is cached, while the origin is asked whether it is current.
    ///
    /// Only of loads under ``CachePolicy/revalidate``; comes first, and at most once.
    case cached(ImageResponse)
    /// The picture is there. Nothing follows.
    case finished(ImageResponse)
}
