// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// An entry of a byte tier: encoded bytes with their metadata.
public struct ByteEntry: Sendable {
    /// The encoded bytes, exactly as stored.
    public let data: Data
    /// The metadata of the entry.
    public let metadata: EntryMetadata
    /// The time of the store.
    public let storedAt: Date
    /// The name of the tier that has the entry, if a cache has found it.
    public internal(set) var tier: String?

    /// Creates an entry.
    ///
    /// ```swift
    /// let entry = ByteEntry(data: data, metadata: EntryMetadata(mediaType: "image/jpeg"))
    /// ```
    public init(data: Data, metadata: EntryMetadata, storedAt: Date = Date()) {
        // A slice has other indices, which callers must not have to know.
        self.data = data.startIndex == 0 ? data : Data(data)
        self.metadata = metadata
        self.storedAt = storedAt
    }

    /// Reads an entry of `key` from its stored form.
    ///
    /// Returns `nil` for bytes that are damaged, that another version of the library has written, or that belong to
    /// another key.
    ///
    /// ```swift
    /// let stored = ByteEntry(data: data, metadata: metadata).encoded(for: key)
    /// let entry = ByteEntry(encoded: stored, for: key)
    /// ```
    public init?(encoded: Data, for key: CacheKey) {
        let parts = encoded.bytes.withUnsafeBytes { bytes -> (EntryHeader, EntryMetadata)? in
            EntryHeader.check(.whole, bytes, of: bytes.count, key: key)
        }
        guard let (header, metadata) = parts else { return nil }
        self.init(data: encoded.suffix(header.bodyByteCount), metadata: metadata, storedAt: header.storedDate)
    }

    /// Reads the metadata of an entry of `key` from the start of its stored form, which has `byteCount` bytes in all.
    ///
    /// Returns `nil` also if `start` ends before the metadata.
    package static func metadata(start: Data, of byteCount: Int, for key: CacheKey) -> EntryMetadata? {
        start.bytes.withUnsafeBytes { EntryHeader.check(.head, $0, of: byteCount, key: key)?.1 }
    }

    /// Returns the stored form: one value with the key, the metadata, the bytes and checksums of all of them.
    ///
    /// It is the form of a ``DiskCache``'s files, for tiers that store one value for each key.
    ///
    /// ```swift
    /// let stored = ByteEntry(data: data, metadata: metadata).encoded(for: key)
    /// ```
    public func encoded(for key: CacheKey) -> Data {
        let storedAt = self.storedAt.timeIntervalSince1970
        return self.data.bytes.withUnsafeBytes { body in
            var encoded = Data(
                EntryHeader.head(
                    key: key,
                    metadata: self.metadata.encoded(),
                    body: body,
                    storedAt: storedAt,
                    createdAt: storedAt,
                    expiresAt: self.metadata.expiry?.timeIntervalSince1970 ?? .infinity
                )
            )
            encoded.append(contentsOf: body)
            return encoded
        }
    }
}
