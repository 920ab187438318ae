import FoundationEssentials
import TintypeConcurrency

/// The first bytes of a body, and what is needed to ask for the others.
struct PartialBody: Sendable, Equatable {
    /// The strong validator of the version that the bytes are of.
    let validator: String
    /// The bytes that the whole body has.
    let total: Int
    let bytes: Data
    /// What counts the bytes, until they are on disk.
    var claim: ByteClaim?

    static func == (left: PartialBody, right: PartialBody) -> Bool {
        left.validator == right.validator && left.total == right.total && left.bytes == right.bytes
    }
}
