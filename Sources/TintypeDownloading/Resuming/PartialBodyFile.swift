// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeHTTP

/// The first bytes of a body, and what is needed to ask for the others.
struct PartialBody: Sendable, Equatable {
    /// The address of the bytes after redirects; see ``PartialBodyKey/source(_:)``.
    let source: [UInt8]
    /// The strong validator of the version that the bytes are of.
    let validator: String
    /// The bytes that the whole body has.
    let total: Int
    /// The fields of the response that they came with, as far as they are about the whole.
    let headers: HeaderFields
    let bytes: Data
    /// Counts the bytes until they are on disk.
    var claim: ByteClaim?

    static func == (left: PartialBody, right: PartialBody) -> Bool {
        left.source == right.source && left.validator == right.validator && left.total == right.total
            && left.headers == right.headers && left.bytes == right.bytes
    }
}

/// How the first bytes of a body lie in a file: a mark, a checksum, then all that it is about.
enum PartialBodyFile {
    private static let mark = Array("TTPART2\n".utf8)
    /// The start of the files of all versions.
    static let family = Array("TTPART".utf8)
    private static let headerCount = Self.mark.count + PartialBodyKey.byteCount

    static func encode(_ body: PartialBody, key: PartialBodyKey) -> Data {
        var content = Data(key.name.utf8)
        content.append(contentsOf: body.source)
        content.append(contentsOf: Self.bytes(UInt64(body.total)))
        Self.append(body.validator, to: &content)
        content.append(contentsOf: Self.bytes(UInt64(body.headers.count)))
        for field in body.headers {
            Self.append(field.name, to: &content)
            Self.append(field.value, to: &content)
        }
        content.append(body.bytes)
        return Data(Self.mark) + Data(PartialBodyKey.digest(content)) + content
    }

    /// Reads `file`; returns `nil` if it is damaged, of another version, or about another request.
    static func decode(_ file: Data, key: PartialBodyKey) -> PartialBody? {
        guard file.starts(with: Self.mark), file.count > Self.headerCount else { return nil }
        let checksum = file.dropFirst(Self.mark.count).prefix(PartialBodyKey.byteCount)
        var content = file.dropFirst(Self.headerCount)
        guard checksum.elementsEqual(PartialBodyKey.digest(content)), content.starts(with: key.name.utf8) else {
            return nil
        }
        content = content.dropFirst(key.name.utf8.count)
        let source = Array(content.prefix(PartialBodyKey.byteCount))
        content = content.dropFirst(PartialBodyKey.byteCount)
        guard source.count == PartialBodyKey.byteCount, let total = Self.takeNumber(&content),
            let validator = Self.takeText(&content), let headers = Self.takeHeaders(&content)
        else { return nil }
        let bytes = Data(content)
        guard !bytes.isEmpty, bytes.count < total else { return nil }
        return PartialBody(source: source, validator: validator, total: total, headers: headers, bytes: bytes)
    }

    private static func append(_ text: String, to content: inout Data) {
        content.append(contentsOf: Self.bytes(UInt64(text.utf8.count)))
        content.append(contentsOf: text.utf8)
    }

    private static func bytes(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }

    private static func takeHeaders(_ content: inout Data) -> HeaderFields? {
        guard let count = Self.takeNumber(&content) else { return nil }
        var headers = HeaderFields()
        while headers.count < count {
            guard let name = Self.takeText(&content), let value = Self.takeText(&content) else { return nil }
            headers.append(value, for: name)
        }
        return headers
    }

    private static func takeText(_ content: inout Data) -> String? {
        guard let length = Self.takeNumber(&content), length <= content.count else { return nil }
        defer { content = content.dropFirst(length) }
        return String(decoding: content.prefix(length), as: UTF8.self)
    }

    private static func takeNumber(_ content: inout Data) -> Int? {
        guard content.count >= 8 else { return nil }
        let number = content.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        content = content.dropFirst(8)
        return Int(exactly: number)
    }
}
