import FoundationEssentials
import TintypeHTTP

/// The stored form: numbers of fixed size, the digest behind its length, then fields to the end.
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

    /// Reads what ``encoded()`` wrote, or returns `nil` for anything that it can't have written.
    convenience init?(encoded bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let status = reader.readUInt16(), let requestDate = reader.readFinite(),
            let responseDate = reader.readFinite(), let birth = reader.readFinite(),
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
            requestDate: Date(timeIntervalSinceReferenceDate: requestDate),
            responseDate: Date(timeIntervalSinceReferenceDate: responseDate),
            selectionDigest: digest.isEmpty ? nil : digest,
            freshness: Freshness(
                birth: Date(timeIntervalSinceReferenceDate: birth),
                lifetime: lifetime,
                staleWhileRevalidate: whileRevalidate,
                staleIfError: ifError,
                flags: Freshness.Flags(rawValue: flags)
            )
        )
    }
}
