import FoundationEssentials

/// How the first bytes of a body lie in a file: a mark, a checksum, then all that it is about.
enum PartialBodyFile {
    private static let mark = Array("TTPART1\n".utf8)
    private static let headerCount = Self.mark.count + PartialBodyKey.byteCount

    static func encode(_ body: PartialBody, key: PartialBodyKey) -> Data {
        var content = Data(key.name.utf8)
        content.append(contentsOf: Self.bytes(UInt64(body.total)))
        content.append(contentsOf: Self.bytes(UInt64(body.validator.utf8.count)))
        content.append(contentsOf: body.validator.utf8)
        content.append(body.bytes)
        return Data(Self.mark) + Data(PartialBodyKey.digest(content)) + content
    }

    /// What `file` holds, or `nil` where it is damaged or about another request.
    static func decode(_ file: Data, key: PartialBodyKey) -> PartialBody? {
        guard file.starts(with: Self.mark), file.count > Self.headerCount else { return nil }
        let checksum = file.dropFirst(Self.mark.count).prefix(PartialBodyKey.byteCount)
        var content = file.dropFirst(Self.headerCount)
        guard checksum.elementsEqual(PartialBodyKey.digest(content)), content.starts(with: key.name.utf8) else {
            return nil
        }
        content = content.dropFirst(key.name.utf8.count)
        guard let total = Self.takeNumber(&content), let length = Self.takeNumber(&content), length <= content.count
        else { return nil }
        let validator = String(decoding: content.prefix(length), as: UTF8.self)
        let bytes = Data(content.dropFirst(length))
        guard !bytes.isEmpty, bytes.count < total else { return nil }
        return PartialBody(validator: validator, total: total, bytes: bytes)
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func takeNumber(_ content: inout Data) -> Int? {
        guard content.count >= 8 else { return nil }
        let number = content.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        content = content.dropFirst(8)
        return Int(exactly: number)
    }
}
