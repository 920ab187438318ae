/// The directives of `Cache-Control` fields (RFC 9111, 5.2), of a request or a response.
///
/// Whatever is malformed still counts as far as it restricts: a broken `no-store` is a `no-store`, and a broken
/// `max-age` is one of zero.
struct CacheControl: Sendable {
    enum Argument: Sendable, Hashable {
        case none
        case text(String)
        case malformed
    }

    struct Directive: Sendable, Hashable {
        /// In lower case.
        let name: String
        let argument: Argument
    }

    let directives: [Directive]

    /// Parses the values of all `Cache-Control` fields, in their order.
    init(_ values: [String]) {
        self.directives = FieldList.elements(of: values).map(Self.directive)
    }

    /// Whether there is a directive of this name, with whatever argument.
    func has(_ name: String) -> Bool {
        self.directives.contains { $0.name == name }
    }

    /// The seconds of the first directive of this name: 0 where they are no number, `nil` without the directive.
    ///
    /// Of several, the first counts (RFC 9111, 4.2.1).
    func seconds(_ name: String) -> Double? {
        guard let directive = self.directives.first(where: { $0.name == name }) else { return nil }
        guard case .text(let text) = directive.argument else { return 0 }
        return DeltaSeconds.parse(text) ?? 0
    }

    /// The argument of `max-stale`: without one any staleness will do.
    var maximumStaleness: Double? {
        guard let directive = self.directives.first(where: { $0.name == "max-stale" }) else { return nil }
        return directive.argument == .none ? .infinity : self.seconds("max-stale")
    }

    /// Whether `no-cache` is about the whole response, rather than some of its fields.
    var forbidsReuse: Bool {
        self.directives.contains { directive in
            guard directive.name == "no-cache" else { return false }
            guard case .text(let names) = directive.argument else { return true }
            return FieldList.elements(of: [names]).isEmpty
        }
    }

    /// The fields, in lower case, that may be reused only after the origin was asked: `no-cache="a, b"`.
    var fieldsNotToReuse: Set<String> {
        var names: Set<String> = []
        for directive in self.directives where directive.name == "no-cache" {
            guard case .text(let list) = directive.argument else { continue }
            names.formUnion(FieldList.elements(of: [list]).map { $0.lowercased() })
        }
        return names
    }

    private static func directive(_ element: String) -> Directive {
        let bytes = Array(element.utf8)
        let name = bytes.prefix { $0 > 0x20 && $0 < 0x7F && !"=;\"".utf8.contains($0) }
        let rest = bytes[name.endIndex...]
        // Only an equals sign may follow, with no white space around it.
        let argument: Argument =
            switch rest.first {
            case nil: .none
            case UInt8(ascii: "="): self.argument(Array(rest.dropFirst()))
            default: .malformed
            }
        return Directive(name: String(decoding: name, as: UTF8.self).lowercased(), argument: argument)
    }

    /// A token or a quoted string: both forms are accepted for every directive.
    private static func argument(_ bytes: [UInt8]) -> Argument {
        guard let first = bytes.first else { return .malformed }
        guard first == UInt8(ascii: "\"") else {
            let isToken = bytes.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 < 0x7F }
            return isToken ? .text(String(decoding: bytes, as: UTF8.self)) : .malformed
        }
        guard FieldList.end(ofQuoteAt: 0, in: bytes) == bytes.count else { return .malformed }
        var text: [UInt8] = []
        var index = 1
        while index < bytes.count - 1 {
            if bytes[index] == UInt8(ascii: "\\") { index += 1 }
            text.append(bytes[index])
            index += 1
        }
        return .text(String(decoding: text, as: UTF8.self))
    }
}
