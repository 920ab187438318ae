/// What a decode gives out, and with it which memory it takes.
public enum DecodeKind: Sendable, Hashable {
    /// A picture: a still one, or the frame of an animation that the options name.
    case picture
    /// The frames of an animation one after the other, drawn on a canvas that stays.
    case frame
    /// The rows of a still picture one by one.
    case rows
    /// A picture and its previews while its bytes arrive.
    case incremental
}
