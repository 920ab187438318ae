// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP
import TintypeImage

/// The stored form.
///
/// A version byte precedes the fields, in the order of their tags. A field is a tag (1 byte), a length (4 bytes) and
/// that many bytes. Numbers are little-endian. A reader skips unknown tags, so that new fields need no new version.
extension EntryMetadata {
    private static let version: UInt8 = 1

    private enum Tag: UInt8 {
        case formatName = 1
        case sourceURL
        case mediaType
        case etag
        case lastModified
        case responseDate
        case byteCount
        case expiry
        case extra
        case response
        case bodyDigest
        case animation
        case damage
    }

    /// Returns the stored form; equal metadata have equal bytes.
    func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.append(Self.version)
        Self.append(self.formatName, as: .formatName, to: &writer)
        Self.append(self.sourceURL, as: .sourceURL, to: &writer)
        Self.append(self.mediaType, as: .mediaType, to: &writer)
        Self.append(self.etag, as: .etag, to: &writer)
        Self.append(self.lastModified, as: .lastModified, to: &writer)
        Self.append(self.responseDate, as: .responseDate, to: &writer)
        if let byteCount = self.byteCount {
            Self.append(UInt64(bitPattern: Int64(byteCount)), as: .byteCount, to: &writer)
        }
        Self.append(self.expiry, as: .expiry, to: &writer)
        if let response = self.response?.encoded() {
            writer.append(Tag.response.rawValue)
            writer.append(UInt32(clamping: response.count))
            writer.append(response)
        }
        if let bodyDigest = self.bodyDigest { Self.append(bodyDigest, as: .bodyDigest, to: &writer) }
        if let animation = self.animation {
            let numbers = [animation.frameCount, animation.loopCount, animation.milliseconds]
            writer.append(Tag.animation.rawValue)
            writer.append(UInt32(numbers.count * MemoryLayout<UInt64>.size))
            for number in numbers { writer.append(UInt64(bitPattern: Int64(number))) }
        }
        if !self.damage.isEmpty {
            writer.append(Tag.damage.rawValue)
            writer.append(UInt32(MemoryLayout<UInt8>.size))
            writer.append(self.damage.rawValue)
        }
        for (name, value) in self.extra.sorted(by: { $0.key < $1.key }) {
            writer.append(Tag.extra.rawValue)
            writer.append(UInt32(clamping: 4 + name.utf8.count + value.utf8.count))
            writer.append(UInt32(clamping: name.utf8.count))
            writer.append(name.utf8)
            writer.append(value.utf8)
        }
        return writer.bytes
    }

    /// Decodes the output of ``encoded()``, and fails for bytes that it cannot have written.
    init?(encoded bytes: UnsafeRawBufferPointer) {
        self.init()
        var reader = ByteReader(bytes)
        guard reader.readByte() == Self.version else { return nil }
        while !reader.isAtEnd {
            guard let tag = reader.readByte(), let length = reader.readUInt32(),
                let field = reader.readBytes(Int(length)), self.read(field, tag: tag)
            else { return nil }
        }
    }

    private mutating func read(_ field: UnsafeRawBufferPointer, tag: UInt8) -> Bool {
        // Skip the tag of a later version.
        guard let tag = Tag(rawValue: tag) else { return true }
        switch tag {
        case .formatName: return Self.read(field, into: &self.formatName)
        case .sourceURL: return Self.read(field, into: &self.sourceURL)
        case .mediaType: return Self.read(field, into: &self.mediaType)
        case .etag: return Self.read(field, into: &self.etag)
        case .lastModified: return Self.read(field, into: &self.lastModified)
        case .responseDate: return Self.read(field, into: &self.responseDate)
        case .expiry: return Self.read(field, into: &self.expiry)
        case .extra: return self.readExtra(field)
        case .response:
            self.response = ResponseRecord(encoded: field)
            return self.response != nil
        case .bodyDigest: return Self.read(field, into: &self.bodyDigest)
        case .animation: return self.readAnimation(field)
        case .damage:
            guard let byte = field.first, field.count == 1 else { return false }
            self.damage = ImageDamage(rawValue: byte)
            return true
        case .byteCount:
            var value: UInt64?
            guard Self.read(field, into: &value), let value else { return false }
            self.byteCount = Int(Int64(bitPattern: value))
            return true
        }
    }

    private mutating func readAnimation(_ field: UnsafeRawBufferPointer) -> Bool {
        var reader = ByteReader(field)
        guard let frameCount = reader.readUInt64(), let loopCount = reader.readUInt64(),
            let milliseconds = reader.readUInt64(), reader.isAtEnd
        else { return false }
        self.animation = Animation(
            frameCount: Int(Int64(bitPattern: frameCount)),
            loopCount: Int(Int64(bitPattern: loopCount)),
            milliseconds: Int(Int64(bitPattern: milliseconds))
        )
        return true
    }

    private mutating func readExtra(_ field: UnsafeRawBufferPointer) -> Bool {
        var reader = ByteReader(field)
        guard let length = reader.readUInt32(), let name = reader.readString(Int(length)),
            let value = reader.readString(reader.remainingCount)
        else { return false }
        self.extra[name] = value
        return true
    }

    // MARK: Fields

    private static func append(_ text: String?, as tag: Tag, to writer: inout ByteWriter) {
        guard let text else { return }
        writer.append(tag.rawValue)
        writer.append(UInt32(clamping: text.utf8.count))
        writer.append(text.utf8)
    }

    private static func append(_ date: Date?, as tag: Tag, to writer: inout ByteWriter) {
        // A reader would refuse the entry.
        guard let date, ByteReader.dates.contains(date.timeIntervalSinceReferenceDate) else { return }
        self.append(date.timeIntervalSinceReferenceDate.bitPattern, as: tag, to: &writer)
    }

    private static func append(_ value: UInt64, as tag: Tag, to writer: inout ByteWriter) {
        writer.append(tag.rawValue)
        writer.append(UInt32(MemoryLayout<UInt64>.size))
        writer.append(value)
    }

    private static func read(_ field: UnsafeRawBufferPointer, into text: inout String?) -> Bool {
        var reader = ByteReader(field)
        text = reader.readString(field.count)
        return text != nil
    }

    private static func read(_ field: UnsafeRawBufferPointer, into value: inout UInt64?) -> Bool {
        var reader = ByteReader(field)
        value = reader.readUInt64()
        return value != nil && reader.isAtEnd
    }

    private static func read(_ field: UnsafeRawBufferPointer, into date: inout Date?) -> Bool {
        var reader = ByteReader(field)
        date = reader.readDate()
        return date != nil && reader.isAtEnd
    }
}

/// The stored form: numbers of fixed size, the length and the bytes of the digest, then fields to the end.
extension ResponseRecord {
    func encoded() -> [UInt8] {
        var writer = ByteWriter()
        writer.append(UInt16(clamping: self.status))
        writer.append(self.requestDate.timeIntervalSinceReferenceDate.bitPattern)
        writer.append(self.responseDate.timeIntervalSinceReferenceDate.bitPattern)
        writer.append(self.freshness.birth.timeIntervalSinceReferenceDate.bitPattern)
        writer.append(self.freshness.lifetime.bitPattern)
        writer.append(self.freshness.staleWhileRevalidate.bitPattern)
        writer.append(self.freshness.staleIfError.bitPattern)
        writer.append(self.freshness.flags.rawValue)
        let digest = (self.selectionDigest ?? "").utf8.prefix(Int(UInt8.max))
        writer.append(UInt8(digest.count))
        writer.append([UInt8](digest))
        for field in self.fields {
            writer.append(UInt16(clamping: field.name.utf8.count))
            writer.append([UInt8](field.name.utf8.prefix(Int(UInt16.max))))
            writer.append(UInt32(clamping: field.value.utf8.count))
            writer.append(field.value.utf8)
        }
        return writer.bytes
    }

    /// Decodes the output of ``encoded()``, and fails for bytes that it cannot have written.
    convenience init?(encoded bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let status = reader.readUInt16(), let requestDate = reader.readDate(),
            let responseDate = reader.readDate(), let birth = reader.readDate(),
            let lifetime = reader.readFinite(), let whileRevalidate = reader.readFinite(),
            let ifError = reader.readFinite(), let flags = reader.readByte(),
            let digestCount = reader.readByte(), let digest = reader.readString(Int(digestCount))
        else { return nil }
        var fields = HeaderFields()
        while !reader.isAtEnd {
            guard let nameCount = reader.readUInt16(), let name = reader.readString(Int(nameCount)),
                let valueCount = reader.readUInt32(), let value = reader.readString(Int(valueCount))
            else { return nil }
            fields.append(value, for: name)
        }
        self.init(
            status: Int(status),
            fields: fields,
            requestDate: requestDate,
            responseDate: responseDate,
            selectionDigest: digest.isEmpty ? nil : digest,
            freshness: Freshness(
                birth: birth,
                lifetime: lifetime,
                staleWhileRevalidate: whileRevalidate,
                staleIfError: ifError,
                flags: Freshness.Flags(rawValue: flags)
            )
        )
    }
}
