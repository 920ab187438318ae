/// What an entry is found by, made once and then cheap to compare.
///
/// A reference to an immutable object: copying costs a retain, hashing feeds one integer,
/// and comparing a key with itself compares two pointers. Make it once for a request that
/// is looked up often.
///
/// Two keys are equal when their texts have the same UTF-8 bytes. (Two strings that are
/// merely canonically equivalent are two keys, as they are two URLs.)
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    private final class Storage: Sendable {
        let text: String
        let hash: UInt64

        init(_ text: String) {
            var text = text
            // `Hasher` is seeded for each process: a client who chooses URLs can't choose collisions.
            var hasher = Hasher()
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
            self.text = text
            self.hash = UInt64(bitPattern: Int64(hasher.finalize()))
        }
    }

    private let storage: Storage

    /// Makes the key of a canonical text, such as a URL and the variant that was asked for.
    public init(_ text: String) {
        self.storage = Storage(text)
    }

    /// The canonical text.
    public var text: String { self.storage.text }

    /// The SHA-256 of the text as 64 lower-case hexadecimal digits: the file name on disk.
    ///
    /// Computed at each call. A memory hit never needs it.
    public var digest: String { KeyDigest(self).fileName }

    public var description: String { self.text }

    /// The hash of the text, computed when the key was made; differs from process to process.
    var hash: UInt64 { self.storage.hash }

    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        if left.storage === right.storage { return true }
        return left.storage.hash == right.storage.hash
            && left.storage.text.utf8.elementsEqual(right.storage.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.storage.hash)
    }
}
