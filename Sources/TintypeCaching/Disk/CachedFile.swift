import Glibc

/// The file that has an entry of the disk tier, opened, and where in it the encoded bytes are.
///
/// For those that hand the bytes on without reading them, as `sendfile` does. The bytes were checked when the file was
/// opened. They stay as they are for as long as this lives, also when the entry is removed or replaced meanwhile: an
/// entry is never written again in place.
public final class CachedFile: Sendable {
    /// The path of the file; another entry may be found there by and by.
    public let path: String
    /// Where the encoded bytes begin, in bytes from the start of the file.
    public let offset: Int
    /// The number of the encoded bytes, which reach to the end of the file.
    public let byteCount: Int
    /// What was stored with them.
    public let metadata: EntryMetadata
    private let file: OpenFile

    init(_ file: consuming OpenFile, at path: String, _ header: EntryHeader, _ metadata: EntryMetadata) {
        self.file = file
        self.path = path
        self.offset = header.bodyOffset
        self.byteCount = header.bodyByteCount
        self.metadata = metadata
    }

    /// The file descriptor, open for reading and closed with this object; its position is at the start of the file.
    ///
    /// Read it with calls that take an offset, because all that hold this object share the position.
    public var descriptor: CInt { self.file.descriptor }
}

extension CachedFile: CustomStringConvertible {
    /// Where the bytes are: the path, their number, and the offset of the first.
    public var description: String { "\(self.path), \(self.byteCount) bytes from \(self.offset) on" }
}
