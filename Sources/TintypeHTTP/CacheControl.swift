// SPDX-License-Identifier: Apache-2.0

/// The directives of `Cache-Control` fields (RFC 9111, 5.2), of a request or a response.
///
/// Whatever is malformed still counts as far as it restricts: a broken `no-store` is a `no-store`, and a broken
/// `max-age` is one of zero.
package struct CacheControl: Sendable {
    package enum Argument: Sendable, Hashable {
        case none
        case text(String)
        case malformed
    }

    package struct Directive: Sendable, Hashable {
        /// In lower case.
        package let name: String
        package let argument: Argument
    }

    package let directives: [Directive]

    /// Parses the values of all `Cache-Control` fields, in their order.
    package init(_ values: [String]) {
        self.directives = values.flatMap { value in
            var value = value
            return value.withUTF8 { Self.directives(in: $0) }
        }
    }

    /// The directives of one field.
    static func directives<Bytes: RandomAccessCollection<UInt8>>(in bytes: Bytes) -> [Directive]
    where Bytes.Index == Int, Bytes.SubSequence.Index == Int {
        FieldList.ranges(in: bytes).map { self.directive(bytes[$0]) }
    }

    /// Whether there is a directive of this name, with whatever argument.
    package func has(_ name: String) -> Bool {
        self.directives.contains { $0.name == name }
    }

    /// Returns the seconds of the first directive of this name (RFC 9111, 4.2.1): 0 if they are not a number, `nil`
    /// without the directive.
    package func seconds(_ name: String) -> Double? {
        guard let directive = self.directives.first(where: { $0.name == name }) else { return nil }
        guard case .text(let text) = directive.argument else { return 0 }
        return DeltaSeconds.parse(text) ?? 0
    }

    /// The argument of `max-stale`: without one any staleness will do.
    package var maximumStaleness: Double? {
        guard let directive = self.directives.first(where: { $0.name == "max-stale" }) else { return nil }
        return directive.argument == .none ? .infinity : self.seconds("max-stale")
    }

    /// Whether `no-cache` is about the whole response, rather than some of its fields.
    package var forbidsReuse: Bool {
        self.directives.contains { directive in
            guard directive.name == "no-cache" else { return false }
            guard case .text(let names) = directive.argument else { return true }
            return FieldList.elements(of: [names]).isEmpty
        }
    }

    /// The fields, in lower case, that may be reused only after the origin was asked: `no-cache="a, b"`.
    package var fieldsNotToReuse: Set<String> {
        var names: Set<String> = []
        for directive in self.directives where directive.name == "no-cache" {
            guard case .text(let list) = directive.argument else { continue }
            names.formUnion(FieldList.elements(of: [list]).map { $0.lowercased() })
        }
        return names
    }

    private static func directive<Bytes: RandomAccessCollection<UInt8>>(_ bytes: Bytes) -> Directive
    where Bytes.Index == Int {
        let nameEnd =
            bytes.firstIndex { byte in
                byte <= 0x20 || byte >= 0x7F || byte == UInt8(ascii: "=") || byte == UInt8(ascii: ";")
                    || byte == UInt8(ascii: "\"")
            } ?? bytes.endIndex
        let name = String(decoding: bytes[..<nameEnd], as: UTF8.self).lowercased()
        guard nameEnd < bytes.endIndex else { return Directive(name: name, argument: .none) }
        // Only an equals sign may follow, with no white space around it.
        guard bytes[nameEnd] == UInt8(ascii: "=") else { return Directive(name: name, argument: .malformed) }
        return Directive(name: name, argument: self.argument((nameEnd + 1)..<bytes.endIndex, of: bytes))
    }

    /// A token or a quoted string: both forms are accepted for every directive.
    private static func argument<Bytes: RandomAccessCollection<UInt8>>(_ range: Range<Int>, of bytes: Bytes) -> Argument
    where Bytes.Index == Int {
        guard !range.isEmpty else { return .malformed }
        guard bytes[range.lowerBound] == UInt8(ascii: "\"") else {
            let isToken = bytes[range].allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 < 0x7F }
            return isToken ? .text(String(decoding: bytes[range], as: UTF8.self)) : .malformed
        }
        guard FieldList.end(ofQuoteAt: range.lowerBound, in: bytes) == range.upperBound else { return .malformed }
        var text: [UInt8] = []
        var index = range.lowerBound + 1
        while index < range.upperBound - 1 {
            if bytes[index] == UInt8(ascii: "\\") { index += 1 }
            text.append(bytes[index])
            index += 1
        }
        return .text(String(decoding: text, as: UTF8.self))
    }
}
