// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeImage

/// The part of an entry to read.
enum EntryPart {
    /// The bytes before the body.
    case head
    case whole
}

/// A buffer for the bytes of an entry file, with functions that check them.
///
/// The buffer frees its memory, unless an entry was made from it.
struct EntryBuffer: ~Copyable {
    let bytes: UnsafeMutableRawBufferPointer

    /// Allocates memory for `count` bytes.
    init(byteCount: Int) throws(SystemCallError) {
        guard MemoryRoom.has(byteCount), let block = malloc(max(1, byteCount)) else {
            throw SystemCallError(call: "malloc", number: ENOMEM)
        }
        self.bytes = UnsafeMutableRawBufferPointer(start: block, count: byteCount)
    }

    deinit {
        free(self.bytes.baseAddress)
    }

    /// Returns the header and the metadata of an entry, if the first `count` bytes are valid and belong to `key`.
    ///
    /// The bytes must contain the given part of a file of `fileByteCount` bytes.
    func check(_ part: EntryPart, _ count: Int, of fileByteCount: Int, key: CacheKey) -> (EntryHeader, EntryMetadata)? {
        EntryHeader.check(part, UnsafeRawBufferPointer(rebasing: self.bytes[..<count]), of: fileByteCount, key: key)
    }

    /// Reads a whole file and returns the name that it has as an entry, or its damage.
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

    /// Returns the entry, which takes ownership of the memory unless the part is a head without body.
    consuming func makeEntry(_ part: EntryPart, _ header: EntryHeader, _ metadata: EntryMetadata) -> ByteEntry {
        guard part == .whole, let block = self.bytes.baseAddress else {
            _ = consume self
            return ByteEntry(data: Data(), metadata: metadata, storedAt: header.storedDate)
        }
        discard self
        let data = Data(
            bytesNoCopy: block.advanced(by: header.bodyOffset),
            count: header.bodyByteCount,
            deallocator: .custom { _, _ in free(block) }
        )
        return ByteEntry(data: data, metadata: metadata, storedAt: header.storedDate)
    }
}

extension EntryHeader {
    /// The time when the body was stored.
    var storedDate: Date { Date(timeIntervalSince1970: self.storedAt) }

    /// Returns the header of an entry, or `nil` if its file is not an entry.
    static func read(
        _ name: EntryName,
        in folder: CacheFolder
    ) throws(SystemCallError) -> (EntryHeader?, OpenFile.Status) {
        try name.withPath { path throws(SystemCallError) in try self.read(at: path, in: folder.descriptor) }
    }

    /// Returns the header of the entry file at `path`, or `nil` if the file is not an entry.
    static func read(
        at path: UnsafePointer<CChar>,
        in folder: CInt
    ) throws(SystemCallError) -> (EntryHeader?, OpenFile.Status) {
        let file = try OpenFile(reading: path, in: folder)
        let status = try file.status()
        return (try self.read(file, status), status)
    }

    /// Returns the header of an open entry file, or `nil` if the file is not an entry.
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
