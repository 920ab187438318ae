// SPDX-License-Identifier: Apache-2.0

/// An open file of an entry of the disk tier, and the range of the encoded bytes in it.
///
/// Use it to pass the bytes on without reading them, as `sendfile` does. The cache checked the bytes when it opened the
/// file. They do not change while this object lives, even if the entry is removed or replaced, because the cache never
/// writes to the file of an entry in place.
public final class CachedFile: Sendable {
    /// The path of the file, at which another entry may be later.
    public let path: String
    /// The offset of the encoded bytes from the start of the file.
    public let offset: Int
    /// The number of encoded bytes, which reach to the end of the file.
    public let byteCount: Int
    /// The metadata of the entry.
    public let metadata: EntryMetadata
    private let file: OpenFile

    init(_ file: consuming OpenFile, at path: String, _ header: EntryHeader, _ metadata: EntryMetadata) {
        self.file = file
        self.path = path
        self.offset = header.bodyOffset
        self.byteCount = header.bodyByteCount
        self.metadata = metadata
    }

    /// The file descriptor, open for reading and closed with this object.
    ///
    /// Read it with calls that take an offset, because all users of this object share the position. The position is at
    /// the start of the file at first.
    public var descriptor: CInt { self.file.descriptor }
}

extension CachedFile: CustomStringConvertible {
    /// The path, the number of bytes, and the offset of the first.
    public var description: String { "\(self.path), \(self.byteCount) bytes from \(self.offset) on" }
}
