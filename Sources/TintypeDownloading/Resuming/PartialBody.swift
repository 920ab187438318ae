import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// The first bytes of a body, and what is needed to ask for the others.
struct PartialBody: Sendable, Equatable {
    /// Where they came from, after redirects; see ``PartialBodyKey/source(_:)``.
    let source: [UInt8]
    /// The strong validator of the version that the bytes are of.
    let validator: String
    /// The bytes that the whole body has.
    let total: Int
    /// The fields of the response that they came with, as far as they are about the whole.
    let headers: HeaderFields
    let bytes: Data
    /// What counts the bytes, until they are on disk.
    var claim: ByteClaim?

    static func == (left: PartialBody, right: PartialBody) -> Bool {
        left.source == right.source && left.validator == right.validator && left.total == right.total
            && left.headers == right.headers && left.bytes == right.bytes
    }
}
