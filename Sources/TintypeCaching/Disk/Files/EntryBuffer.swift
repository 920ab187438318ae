public import FoundationEssentials
import Glibc
import TintypeImage

/// What the disk tier holds under a key.
public struct DiskEntry: Sendable {
    /// The encoded bytes, exactly as they were stored.
    public let data: Data
    /// What was stored with them.
    public let metadata: EntryMetadata
    /// When they were stored.
    public let storedAt: Date

    /// Creates an entry.
    public init(data: Data, metadata: EntryMetadata, storedAt: Date) {
        self.data = data
        self.metadata = metadata
        self.storedAt = storedAt
    }
}

/// How much of an entry is read.
enum EntryPart {
    /// What comes before the body.
    case head
    case whole
}

/// The bytes of an entry file in memory, checked, and what becomes of them.
///
/// The memory is freed with the buffer, unless an entry was made of it.
struct EntryBuffer: ~Copyable {
    let bytes: UnsafeMutableRawBufferPointer

    /// Takes memory for `count` bytes.
    init(byteCount: Int) throws(SystemCallError) {
        guard MemoryRoom.has(byteCount), let block = malloc(max(1, byteCount)) else {
            throw SystemCallError(call: "malloc", number: ENOMEM)
        }
        self.bytes = UnsafeMutableRawBufferPointer(start: block, count: byteCount)
    }

    deinit {
        free(self.bytes.baseAddress)
    }

    /// The header and metadata of the entry, if the first `count` bytes of a file of `fileByteCount` have that part of
    /// it, exactly as it was stored under `key`.
    func check(_ part: EntryPart, _ count: Int, of fileByteCount: Int, key: CacheKey) -> (EntryHeader, EntryMetadata)? {
        guard count >= EntryHeader.byteCount else { return nil }
        let file = UnsafeRawBufferPointer(rebasing: self.bytes[..<count])
        guard let header = EntryHeader(file, fileByteCount: fileByteCount), header.bodyOffset <= count,
            header.matches(part == .whole ? file : UnsafeRawBufferPointer(rebasing: file[..<header.bodyOffset]))
        else { return nil }
        let keyEnd = EntryHeader.byteCount + header.keyByteCount
        guard Self.isText(UnsafeRawBufferPointer(rebasing: file[EntryHeader.byteCount..<keyEnd]), key),
            let metadata = EntryMetadata(encoded: UnsafeRawBufferPointer(rebasing: file[keyEnd..<header.bodyOffset]))
        else { return nil }
        return (header, metadata)
    }

    /// Reads a whole file and checks it: the name that it has as an entry, or what is wrong with it.
    static func verify(
        _ file: borrowing OpenFile,
        _ byteCount: Int
    ) throws(SystemCallError) -> (name: EntryName?, damage: VerifyResult.Damage?) {
        let buffer = try EntryBuffer(byteCount: byteCount)
        guard try file.read(into: buffer.bytes) == byteCount else { return (nil, .header) }
        let bytes = UnsafeRawBufferPointer(buffer.bytes)
        guard let header = EntryHeader(bytes, fileByteCount: byteCount) else { return (nil, .header) }
        guard header.matches(bytes) else { return (nil, .checksum) }
        let key = bytes[EntryHeader.byteCount..<EntryHeader.byteCount + header.keyByteCount]
        guard let text = String(validating: key, as: UTF8.self) else { return (nil, .name) }
        return (EntryName(CacheKey(text)), nil)
    }

    /// Makes the entry, which keeps the memory if it is whole; a head has no bytes.
    consuming func makeEntry(_ part: EntryPart, _ header: EntryHeader, _ metadata: EntryMetadata) -> DiskEntry {
        guard part == .whole, let block = self.bytes.baseAddress else {
            _ = consume self
            return DiskEntry(data: Data(), metadata: metadata, storedAt: header.storedDate)
        }
        discard self
        let data = Data(
            bytesNoCopy: block.advanced(by: header.bodyOffset),
            count: header.bodyByteCount,
            deallocator: .custom { _, _ in free(block) }
        )
        return DiskEntry(data: data, metadata: metadata, storedAt: header.storedDate)
    }

    private static func isText(_ bytes: UnsafeRawBufferPointer, _ key: CacheKey) -> Bool {
        var text = key.text
        return text.withUTF8 { text in
            guard text.count == bytes.count, let text = text.baseAddress, let start = bytes.baseAddress else {
                return text.count == bytes.count
            }
            return memcmp(text, start, bytes.count) == 0
        }
    }
}

extension EntryHeader {
    /// When the body was stored.
    var storedDate: Date { Date(timeIntervalSince1970: self.storedAt) }

    /// The header of an entry; `nil` when its file is none.
    static func read(
        _ name: EntryName,
        in folder: CacheFolder
    ) throws(SystemCallError) -> (EntryHeader?, OpenFile.Status) {
        try name.withPath { path throws(SystemCallError) in try self.read(at: path, in: folder.descriptor) }
    }

    /// The header of the entry file at `path`; `nil` when the file is none.
    static func read(
        at path: UnsafePointer<CChar>,
        in folder: CInt
    ) throws(SystemCallError) -> (EntryHeader?, OpenFile.Status) {
        let file = try OpenFile(reading: path, in: folder)
        let status = try file.status()
        return (try self.read(file, status), status)
    }

    /// The header of an opened entry file; `nil` when the file is none.
    static func read(
        _ file: borrowing OpenFile,
        _ status: OpenFile.Status
    ) throws(SystemCallError) -> EntryHeader? {
        guard status.isRegular, status.byteCount >= EntryHeader.byteCount else { return nil }
        var bytes = InlineArray<72, UInt8>(repeating: 0)
        return try withUnsafeMutableBytes(of: &bytes) { buffer throws(SystemCallError) -> EntryHeader? in
            guard try file.read(into: buffer) == buffer.count else { return nil }
            return EntryHeader(UnsafeRawBufferPointer(buffer), fileByteCount: status.byteCount)
        }
    }
}
