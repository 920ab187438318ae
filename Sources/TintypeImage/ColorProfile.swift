public import FoundationEssentials

/// An embedded ICC profile, kept because it was asked for.
///
/// A class, so that a picture stays small: most have none.
public final class ColorProfile: Sendable {
    /// The profile as stored, in the format of ICC.1.
    public let data: Data

    /// Wraps the bytes of a profile.
    ///
    /// A slice is copied: it would keep the whole file that it was cut from.
    public init(data: Data) {
        self.data = data.startIndex == 0 ? data : data.withUnsafeBytes { Data($0) }
    }
}
