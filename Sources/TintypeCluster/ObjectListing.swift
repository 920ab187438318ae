// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// A page of the keys that a store lists: the answer to ListObjectsV2.
struct ObjectListing: Sendable, Equatable {
    /// The keys of the objects.
    private(set) var keys: [String] = []
    /// The token that requests the next page; `nil` on the last page.
    private(set) var nextPage: String?

    /// Reads the XML of an answer.
    ///
    /// Returns `nil` for anything else, and for an incomplete answer. A removal that trusted such an answer could leave
    /// objects behind.
    init?(_ xml: Data) {
        var hasEnded = false
        var isTruncated = false
        var token: String?
        for piece in Array(xml).split(separator: UInt8(ascii: "<")) {
            guard let end = piece.firstIndex(of: UInt8(ascii: ">")) else { return nil }
            let tag = piece[..<end].prefix { $0 != UInt8(ascii: " ") }
            let text = piece[end...].dropFirst()
            switch String(decoding: tag, as: UTF8.self) {
            case "Key": self.keys.append(Self.decode(text))
            case "IsTruncated": isTruncated = text.elementsEqual("true".utf8)
            case "NextContinuationToken": token = Self.decode(text)
            case "/ListBucketResult": hasEnded = true
            default: break
            }
        }
        guard hasEnded, !isTruncated || token != nil else { return nil }
        self.nextPage = isTruncated ? token : nil
    }

    /// Returns the text in which the entities of XML are characters.
    private static func decode(_ text: ArraySlice<UInt8>) -> String {
        guard text.contains(UInt8(ascii: "&")) else { return String(decoding: text, as: UTF8.self) }
        var decoded: [UInt8] = []
        var rest = text
        while let start = rest.firstIndex(of: UInt8(ascii: "&")) {
            decoded += rest[..<start]
            rest = rest[start...]
            guard let end = rest.firstIndex(of: UInt8(ascii: ";")),
                let character = self.character(String(decoding: rest[start..<end].dropFirst(), as: UTF8.self))
            else { break }
            decoded += Array(String(character).utf8)
            rest = rest[end...].dropFirst()
        }
        return String(decoding: decoded + rest, as: UTF8.self)
    }

    /// Returns the character of an entity such as `amp` or `#x26`.
    private static func character(_ entity: String) -> Character? {
        switch entity {
        case "amp": return "&"
        case "lt": return "<"
        case "gt": return ">"
        case "quot": return "\""
        case "apos": return "'"
        default: break
        }
        guard entity.hasPrefix("#") else { return nil }
        let isHexadecimal = entity.hasPrefix("#x")
        let number = UInt32(entity.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10)
        return number.flatMap { Unicode.Scalar($0) }.map { Character($0) }
    }
}
