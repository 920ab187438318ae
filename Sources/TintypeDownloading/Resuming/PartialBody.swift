import FoundationEssentials

/// The first bytes of a body, and what is needed to ask for the others.
struct PartialBody: Sendable, Equatable {
    /// The strong validator of the version that the bytes are of.
    let validator: String
    /// The bytes that the whole body has.
    let total: Int
    let bytes: Data
}
