import CTintypeXXHash
import Glibc
import Synchronization

/// What an entry is found by, made once and then cheap to compare.
///
/// A reference to an immutable object: copying costs a retain, hashing feeds one integer,
/// and comparing a key with itself compares two pointers. Make it once for a request that
/// is looked up often.
///
/// Two keys are equal when their texts have the same UTF-8 bytes. (Two strings that are
/// merely canonically equivalent are two keys, as they are two URLs.)
///
/// What is made of an entry, such as a thumbnail, has a key that is derived from that one's (``derived(_:)``). The two
/// are of one family, which can be removed as one.
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    private final class Storage: Sendable {
        /// Drawn for each process: a client that chooses URLs can't choose those that collide.
        private static let secret = (0..<192).map { _ in UInt8.random(in: .min ... .max) }

        let text: String
        let hash: UInt64
        /// The parts of the entry name, made when they are first asked for; the first is 0 until then.
        private let nameHigh = Atomic<UInt64>(0)
        private let nameLow = Atomic<UInt64>(0)

        /// What an entry of the text is called on disk.
        var entryName: EntryName {
            let high = self.nameHigh.load(ordering: .acquiring)
            if high != 0 {
                return EntryName(high: high, low: UInt32(truncatingIfNeeded: self.nameLow.load(ordering: .relaxed)))
            }
            let digest = KeyDigest(text: self.text)
            let root = self.rootText
            let isRoot = root.endIndex == self.text.endIndex
            let name = EntryName(digest, root: isRoot ? digest : KeyDigest(text: String(root)))
            // Another thread that does the same writes the same.
            self.nameLow.store(UInt64(name.low), ordering: .relaxed)
            self.nameHigh.store(name.high, ordering: .releasing)
            return name
        }

        /// The text of the key that the whole family is derived from.
        var rootText: Substring {
            let text = self.text.utf8
            var rest = text[...]
            while let lineEnd = rest.firstIndex(of: UInt8(ascii: "\n")) {
                rest = text[text.index(after: lineEnd)...]
                if rest.first == CacheKey.derivation { return self.text[..<lineEnd] }
            }
            return self.text[...]
        }

        init(_ text: String) {
            var text = text
            self.hash = text.withUTF8 { text in
                Self.secret.withUnsafeBytes { secret in
                    XXH3_64bits_withSecret(text.baseAddress, text.count, secret.baseAddress, secret.count)
                }
            }
            self.text = text
        }

        /// Whether the texts have the same bytes.
        func hasSameText(as other: Storage) -> Bool {
            self.text.utf8.span.bytes.withUnsafeBytes { own in
                other.text.utf8.span.bytes.withUnsafeBytes { other in
                    guard own.count == other.count, let ownBase = own.baseAddress, let otherBase = other.baseAddress
                    else { return own.count == other.count }
                    return memcmp(ownBase, otherBase, own.count) == 0
                }
            }
        }
    }

    private let storage: Storage

    /// Makes the key of a canonical text, such as a URL and the variant that was asked for.
    public init(_ text: String) {
        self.storage = Storage(text)
    }

    /// What a line of a key's text begins with that says what is made of the entry that the lines before name: `>`.
    fileprivate static let derivation = UInt8(ascii: ">")

    /// The key of what is made of this key's entry, told apart by `name`; it is of the same family.
    ///
    /// Its text is that of this key, a line feed, `>` and `name`.
    public func derived(_ name: String) -> CacheKey {
        CacheKey("\(self.text)\n>\(name)")
    }

    /// Whether the two are derived from the same key, or one from the other.
    public func isOfFamily(of key: CacheKey) -> Bool {
        self.storage.rootText.utf8.elementsEqual(key.storage.rootText.utf8)
    }

    /// The canonical text.
    public var text: String { self.storage.text }

    /// The SHA-256 of the text as 64 lower-case hexadecimal digits; the file name on disk is its first 24, the latter
    /// half of which is that of the family.
    ///
    /// Computed at each call. A memory hit never needs it.
    public var digest: String { KeyDigest(self).fileName }

    public var description: String { self.text }

    /// What an entry of the key is called on disk; computed once.
    var entryName: EntryName { self.storage.entryName }

    /// The hash of the text, computed when the key was made; differs from process to process.
    var hash: UInt64 { self.storage.hash }

    /// The bytes of the text beyond those of an ordinary URL, which a table of many keys counts: up to 512, the
    /// number of entries is what bounds them.
    var excessByteCount: Int { max(0, self.text.utf8.count - 512) }

    /// Where the key lies: copies of one key have the same, other keys have others while both live.
    var identity: UInt { UInt(bitPattern: ObjectIdentifier(self.storage)) }

    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        if left.storage === right.storage { return true }
        return left.storage.hash == right.storage.hash && left.storage.hasSameText(as: right.storage)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.storage.hash)
    }
}
