/// What becomes of an embedded colour profile.
public enum ColorHandling: Sendable, Hashable {
    /// How colours outside the target's range are brought into it (ICC.1, section 6.2).
    public enum Intent: Sendable, Hashable {
        /// Colours inside the range stay, those outside are cut off. Whites match.
        case relativeColorimetric
        /// The whole range is compressed so that relations look right.
        case perceptual
    }

    /// Samples are converted to sRGB.
    case convert(Intent)
    /// Samples stay as they are, and the picture carries the profile.
    case keep
    /// Samples stay as they are and are taken for sRGB.
    case ignore
}
