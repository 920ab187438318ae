// SPDX-License-Identifier: Apache-2.0

import CTintypeXXHash

/// The first bytes of an entry file.
///
/// A file is the header, the text of the key, the metadata and the body, without gaps. Everything before the body is
/// the head, which has its own checksum. Numbers are little-endian.
///
///     offset  size
///          0     8  magic
///          8     4  version
///         12     4  zero
///         16     8  checksum of the head from offset 24 on
///         24     8  checksum of the body
///         32     4  bytes of the key
///         36     4  bytes of the metadata
///         40     8  bytes of the body
///         48     8  time of this store (seconds since 1970)
///         56     8  time of the first store under the key
///         64     8  expiry of the entry, or infinity
struct EntryHeader {
    static let byteCount = 72
    static let magic: [UInt8] = [0x89, 0x54, 0x49, 0x4E, 0x54, 0x59, 0x50, 0x45]
    private static let version: UInt32 = 2
    private static let checksumEnd = 24

    let keyByteCount: Int
    let metadataByteCount: Int
    let bodyByteCount: Int
    let storedAt: Double
    let createdAt: Double
    let expiresAt: Double
    private let headChecksum: UInt64
    private let bodyChecksum: UInt64

    /// Reads the header of a file of `fileByteCount` bytes.
    ///
    /// Fails if no writer of this version can have written it.
    init?(_ bytes: UnsafeRawBufferPointer, fileByteCount: Int) {
        var reader = ByteReader(bytes)
        guard let magic = reader.readBytes(Self.magic.count), magic.elementsEqual(Self.magic),
            reader.readUInt32() == Self.version, reader.readUInt32() == 0,
            let headChecksum = reader.readUInt64(), let bodyChecksum = reader.readUInt64(),
            let keyByteCount = reader.readUInt32(),
            let metadataByteCount = reader.readUInt32(), let bodyByteCount = reader.readUInt64(),
            let storedAt = reader.readUInt64(), let createdAt = reader.readUInt64(),
            let expiresAt = reader.readUInt64()
        else { return nil }
        let headByteCount = Self.byteCount + Int(keyByteCount) + Int(metadataByteCount)
        guard headByteCount <= fileByteCount, bodyByteCount == UInt64(fileByteCount - headByteCount) else { return nil }
        self.headChecksum = headChecksum
        self.bodyChecksum = bodyChecksum
        self.keyByteCount = Int(keyByteCount)
        self.metadataByteCount = Int(metadataByteCount)
        self.bodyByteCount = fileByteCount - headByteCount
        self.storedAt = Double(bitPattern: storedAt)
        self.createdAt = Double(bitPattern: createdAt)
        self.expiresAt = Double(bitPattern: expiresAt)
    }

    /// The offset of the body in the file.
    var bodyOffset: Int { Self.byteCount + self.keyByteCount + self.metadataByteCount }

    /// Whether the checksums match `bytes`, which are the head or the whole file.
    func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard Self.checksum(of: bytes[Self.checksumEnd..<self.bodyOffset]) == self.headChecksum else { return false }
        return bytes.count == self.bodyOffset || Self.checksum(of: bytes[self.bodyOffset...]) == self.bodyChecksum
    }

    /// Returns the header and the metadata of an entry, if `bytes` are valid and belong to `key`.
    ///
    /// The bytes begin a file of `fileByteCount` bytes, and must contain the given part of it.
    static func check(
        _ part: EntryPart,
        _ bytes: UnsafeRawBufferPointer,
        of fileByteCount: Int,
        key: CacheKey
    ) -> (EntryHeader, EntryMetadata)? {
        guard bytes.count >= Self.byteCount, let header = EntryHeader(bytes, fileByteCount: fileByteCount),
            header.bodyOffset <= bytes.count
        else { return nil }
        let head = UnsafeRawBufferPointer(rebasing: bytes[..<header.bodyOffset])
        let keyEnd = Self.byteCount + header.keyByteCount
        guard header.matches(part == .whole ? bytes : head),
            key.text.utf8.elementsEqual(head[Self.byteCount..<keyEnd]),
            let metadata = EntryMetadata(encoded: UnsafeRawBufferPointer(rebasing: head[keyEnd...]))
        else { return nil }
        return (header, metadata)
    }

    /// Returns the head of the file of `body`.
    static func head(
        key: CacheKey,
        metadata: [UInt8],
        body: UnsafeRawBufferPointer,
        storedAt: Double,
        createdAt: Double,
        expiresAt: Double
    ) -> [UInt8] {
        var covered = ByteWriter()
        covered.append(Self.checksum(of: body[...]))
        covered.append(UInt32(clamping: key.text.utf8.count))
        covered.append(UInt32(clamping: metadata.count))
        covered.append(UInt64(body.count))
        covered.append(storedAt.bitPattern)
        covered.append(createdAt.bitPattern)
        covered.append(expiresAt.bitPattern)
        covered.append(key.text.utf8)
        covered.append(metadata)

        var head = ByteWriter()
        head.append(Self.magic)
        head.append(Self.version)
        head.append(UInt32(0))
        head.append(covered.bytes.withUnsafeBytes { Self.checksum(of: $0[...]) })
        head.append(covered.bytes)
        return head.bytes
    }

    private static func checksum(of bytes: Slice<UnsafeRawBufferPointer>) -> UInt64 {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        return cxxhash_64bits(bytes.baseAddress, bytes.count)
    }
}
