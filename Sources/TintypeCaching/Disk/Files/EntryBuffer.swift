import FoundationEssentials
import Glibc
import TintypeImage

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

    /// The header and metadata of the entry, if the first `count` bytes are exactly what was stored
    /// under `key`.
    func check(_ count: Int, key: CacheKey) -> (EntryHeader, EntryMetadata)? {
        guard count >= EntryHeader.byteCount else { return nil }
        let file = UnsafeRawBufferPointer(rebasing: self.bytes[..<count])
        guard let header = EntryHeader(file, fileByteCount: count), header.matches(file) else { return nil }
        let keyEnd = EntryHeader.byteCount + header.keyByteCount
        guard Self.isText(UnsafeRawBufferPointer(rebasing: file[EntryHeader.byteCount..<keyEnd]), key),
            let metadata = EntryMetadata(encoded: UnsafeRawBufferPointer(rebasing: file[keyEnd..<header.bodyOffset]))
        else { return nil }
        return (header, metadata)
    }

    /// Makes the entry, which keeps the memory.
    consuming func makeEntry(_ header: EntryHeader, _ metadata: EntryMetadata) -> DiskEntry {
        let block = self.bytes.baseAddress
        discard self
        guard let block else { return DiskEntry(data: Data(), metadata: metadata, storedAt: header.storedDate) }
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
}
