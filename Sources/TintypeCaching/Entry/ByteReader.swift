// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// Reads little-endian values from untrusted bytes, and never past their end.
///
/// The bytes must outlive the reader, so create and use it inside one `withUnsafeBytes`.
struct ByteReader {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// The number of bytes that have not been read.
    var remainingCount: Int { self.bytes.count - self.position }
    /// Whether all bytes have been read.
    var isAtEnd: Bool { self.remainingCount == 0 }

    mutating func readByte() -> UInt8? {
        self.readBytes(1)?.first
    }

    mutating func readUInt16() -> UInt16? {
        guard let field = self.readBytes(MemoryLayout<UInt16>.size) else { return nil }
        return UInt16(littleEndian: field.loadUnaligned(as: UInt16.self))
    }

    mutating func readUInt32() -> UInt32? {
        guard let field = self.readBytes(MemoryLayout<UInt32>.size) else { return nil }
        return UInt32(littleEndian: field.loadUnaligned(as: UInt32.self))
    }

    mutating func readUInt64() -> UInt64? {
        guard let field = self.readBytes(MemoryLayout<UInt64>.size) else { return nil }
        return UInt64(littleEndian: field.loadUnaligned(as: UInt64.self))
    }

    /// Reads a finite number.
    mutating func readFinite() -> Double? {
        guard let bits = self.readUInt64() else { return nil }
        let value = Double(bitPattern: bits)
        return value.isFinite ? value : nil
    }

    /// Reads the date that many seconds after the reference date.
    mutating func readDate() -> Date? {
        guard let seconds = self.readFinite(), Self.dates.contains(seconds) else { return nil }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    /// The dates that an entry may have, in seconds from the reference date: about 3,000 years before and after.
    ///
    /// The seconds of later dates may not fit into an integer.
    static let dates = -1e11...1e11

    /// Reads `count` bytes of valid UTF-8.
    mutating func readString(_ count: Int) -> String? {
        guard let field = self.readBytes(count) else { return nil }
        // Nearly all texts are ASCII, which needs no validation. The general path is several times slower.
        let isASCII = field.allSatisfy { $0 < 0x80 }
        return isASCII ? String(decoding: field, as: UTF8.self) : String(validating: field, as: UTF8.self)
    }

    mutating func readBytes(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, count <= self.remainingCount else { return nil }
        defer { self.position += count }
        return UnsafeRawBufferPointer(rebasing: self.bytes[self.position..<self.position + count])
    }
}

/// Appends little-endian values to bytes.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { self.bytes.append(contentsOf: $0) }
    }

    mutating func append(_ text: String.UTF8View) {
        self.bytes.append(contentsOf: text)
    }

    mutating func append(_ bytes: [UInt8]) {
        self.bytes.append(contentsOf: bytes)
    }
}
