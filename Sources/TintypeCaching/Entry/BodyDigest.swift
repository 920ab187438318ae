import CXXHash
public import FoundationEssentials

/// Names the bytes of a body, to tell whether two pictures were made of the same ones.
///
/// XXH3 of 64 bits: it tells a changed picture from an unchanged one, and proves nothing to an adversary.
public enum BodyDigest {
    /// The digest of `body`.
    public static func value(of body: Data) -> UInt64 {
        body.withUnsafeBytes { XXH3_64bits($0.baseAddress, $0.count) }
    }
}
