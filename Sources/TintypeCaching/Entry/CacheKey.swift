// SPDX-License-Identifier: Apache-2.0

import CTintypeXXHash
import Glibc
import Synchronization

/// The key of a cache entry, created once and cheap to compare.
///
/// A key is a reference to an immutable object. Copying it costs a retain, hashing it feeds one integer, and comparing
/// it with a copy compares two pointers. Create the key once for a request that is looked up often.
///
/// Two keys are equal if their texts have the same UTF-8 bytes. Strings that are merely canonically equivalent are
/// different keys, as they are different URLs.
///
/// A product of an entry, such as a thumbnail, has a key that is derived from the entry's key (``derived(_:)``). The
/// two keys belong to one family, and a cache can remove a whole family at once.
public struct CacheKey: Sendable, Hashable, CustomStringConvertible {
    private final class Storage: Sendable {
        /// Random for each process, so that a client that chooses URLs cannot choose colliding ones.
        private static let secret = (0..<192).map { _ in UInt8.random(in: .min ... .max) }

        let text: String
        let hash: UInt64
        /// The length of ``rootText`` in bytes, and its hash.
        let rootByteCount: Int
        let rootHash: UInt64
        /// The parts of the entry name, computed at the first use; the first is 0 until then.
        private let nameHigh = Atomic<UInt64>(0)
        private let nameLow = Atomic<UInt64>(0)

        var isDerived: Bool { self.rootByteCount < self.text.utf8.count }

        /// The name on disk of an entry with this text.
        var entryName: EntryName {
            let high = self.nameHigh.load(ordering: .acquiring)
            if high != 0 {
                return EntryName(high: high, low: UInt32(truncatingIfNeeded: self.nameLow.load(ordering: .relaxed)))
            }
            let digest = KeyDigest(text: self.text)
            let name = EntryName(digest, root: self.isDerived ? KeyDigest(text: String(self.rootText)) : digest)
            // Another thread that computes the name writes the same values.
            self.nameLow.store(UInt64(name.low), ordering: .relaxed)
            self.nameHigh.store(name.high, ordering: .releasing)
            return name
        }

        /// The text of the key from which the whole family is derived.
        var rootText: Substring {
            let text = self.text.utf8
            return self.text[..<text.index(text.startIndex, offsetBy: self.rootByteCount)]
        }

        init(_ text: String) {
            var text = text
            (self.hash, self.rootByteCount, self.rootHash) = text.withUTF8 { text in
                let hash = Self.hash(of: text)
                let rootByteCount = Self.rootByteCount(of: text)
                let isRoot = rootByteCount == text.count
                let rootHash = isRoot ? hash : Self.hash(of: UnsafeBufferPointer(rebasing: text[..<rootByteCount]))
                return (hash, rootByteCount, rootHash)
            }
            self.text = text
        }

        private static func hash(of text: UnsafeBufferPointer<UInt8>) -> UInt64 {
            self.secret.withUnsafeBytes { secret in
                XXH3_64bits_withSecret(text.baseAddress, text.count, secret.baseAddress, secret.count)
            }
        }

        /// Returns the number of bytes before the first line that names a derivation.
        private static func rootByteCount(of text: UnsafeBufferPointer<UInt8>) -> Int {
            guard let start = text.baseAddress else { return 0 }
            var count = 0
            while let line = memchr(start + count, Int32(UInt8(ascii: "\n")), text.count - count) {
                let lineEnd = UnsafeRawPointer(line) - UnsafeRawPointer(start)
                count = lineEnd + 1
                if count < text.count, text[count] == UInt8(ascii: ">") { return lineEnd }
            }
            return text.count
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

    /// Creates the key of a canonical text, such as a URL and its variant.
    ///
    /// ```swift
    /// let key = CacheKey("https://example.com/photo.jpg")
    /// ```
    public init(_ text: String) {
        self.storage = Storage(text)
    }

    /// Returns the key of the product `name` of this key's entry; it belongs to the same family.
    ///
    /// Its text is the text of this key, a line feed, `>` and `name`.
    ///
    /// ```swift
    /// let thumbnail = CacheKey("https://example.com/photo.jpg").derived("400x300")
    /// print(thumbnail.isDerived)  // true
    /// ```
    public func derived(_ name: String) -> CacheKey {
        CacheKey("\(self.text)\n>\(name)")
    }

    /// Whether both keys are derived from one key, or one from the other.
    ///
    /// ```swift
    /// let isOfFamily = key.derived("400x300").isOfFamily(of: key)  // true
    /// ```
    public func isOfFamily(of key: CacheKey) -> Bool {
        self.storage.rootHash == key.storage.rootHash
            && self.storage.rootText.utf8.elementsEqual(key.storage.rootText.utf8)
    }

    /// Whether the key is derived from another one.
    public var isDerived: Bool { self.storage.isDerived }

    /// The key from which the whole family is derived; the key itself if it is derived from no other.
    public var root: CacheKey { self.isDerived ? CacheKey(String(self.storage.rootText)) : self }

    /// The canonical text.
    public var text: String { self.storage.text }

    /// The SHA-256 of the text as 64 lower-case hexadecimal digits.
    ///
    /// Computed at each call. A memory hit never needs it. The name of the entry's file consists of the first 12
    /// digits, and of digits 13 to 24 for the key from which the family is derived, which is usually the same key.
    public var digest: String { KeyDigest(self).fileName }

    public var description: String { self.text }

    /// The name of the key's entry on disk, computed once.
    var entryName: EntryName { self.storage.entryName }

    /// The hash of the text, computed when the key was created; it differs between processes.
    var hash: UInt64 { self.storage.hash }

    /// The bytes of the text beyond 512, which the memory limits count.
    ///
    /// The limit on the number of entries bounds shorter texts.
    var excessByteCount: Int { max(0, self.text.utf8.count - 512) }

    /// The address of the storage, which copies of a key share and no other live key has.
    var identity: UInt { UInt(bitPattern: ObjectIdentifier(self.storage)) }

    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        if left.storage === right.storage { return true }
        return left.storage.hash == right.storage.hash && left.storage.hasSameText(as: right.storage)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.storage.hash)
    }
}
