// SPDX-License-Identifier: Apache-2.0

/// One header field of a request or a response.
public struct HeaderField: Sendable {
    /// The name, as it was given or received.
    public let name: String
    /// The value, without the white space around it.
    public var value: String

    /// Creates a field.
    ///
    /// ```swift
    /// let field = HeaderField(name: "Accept-Language", value: "de")
    /// ```
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the field has this name; the case of ASCII letters does not count.
    ///
    /// ```swift
    /// let field = HeaderField(name: "ETag", value: "\"a\"")
    /// print(field.isNamed("etag"))  // true
    /// ```
    public func isNamed(_ other: String) -> Bool {
        Self.areSame(self.name, other)
    }

    fileprivate static func areSame(_ name: String, _ other: String) -> Bool {
        let mine = name.utf8
        let theirs = other.utf8
        guard mine.count == theirs.count else { return false }
        // Names are looked up many times for each response; this is much faster than two iterators.
        let isEqual = mine.withContiguousStorageIfAvailable { mine in
            theirs.withContiguousStorageIfAvailable { theirs in
                mine.indices.allSatisfy { ASCIIText.lowercased(mine[$0]) == ASCIIText.lowercased(theirs[$0]) }
            }
        }
        return (isEqual ?? nil)
            ?? zip(mine, theirs).allSatisfy { ASCIIText.lowercased($0) == ASCIIText.lowercased($1) }
    }
}

// MARK: - Hashable

extension HeaderField: Hashable {
    /// Fields are equal whose values have the same bytes, and whose names differ in nothing but case.
    ///
    /// Strings that are merely canonically equivalent are two values: they are sent as they are.
    public static func == (left: HeaderField, right: HeaderField) -> Bool {
        left.value.utf8.count == right.value.utf8.count && left.value.utf8.elementsEqual(right.value.utf8)
            && left.isNamed(right.name)
    }

    public func hash(into hasher: inout Hasher) {
        for byte in self.name.utf8 { hasher.combine(ASCIIText.lowercased(byte)) }
        hasher.combine(self.value)
    }
}

/// The header fields of a request or a response, in their order.
///
/// Names are compared without regard to ASCII case, and a name may occur more than once.
///
/// Equal headers have equal fields in the same order.
public struct HeaderFields: Sendable {
    /// Names and values, in pairs as literals bring them: those need not be copied so.
    private var fields: [(String, String)]

    /// Creates headers with no field.
    ///
    /// ```swift
    /// var headers = HeaderFields()
    /// headers["Accept"] = "image/webp"
    /// ```
    public init() {
        self.fields = []
    }

    /// The value of the first field called `name`; setting replaces every field of that name.
    public subscript(name: String) -> String? {
        get { self.fields.first { HeaderField.areSame($0.0, name) }?.1 }
        set { self.set(newValue, for: name) }
    }

    /// The values of all fields called `name`, in their order.
    ///
    /// ```swift
    /// let headers: HeaderFields = ["Vary": "Accept", "vary": "Origin"]
    /// print(headers.values(for: "Vary"))  // ["Accept", "Origin"]
    /// ```
    public func values(for name: String) -> [String] {
        self.fields.filter { HeaderField.areSame($0.0, name) }.map(\.1)
    }

    /// Adds a field after the others, whether or not the name occurs already.
    ///
    /// ```swift
    /// var headers: HeaderFields = ["Vary": "Accept"]
    /// headers.append("Origin", for: "Vary")
    /// ```
    public mutating func append(_ value: String, for name: String) {
        self.fields.append((name, value))
    }

    /// Makes `value` the only one of `name`; `nil` removes the name.
    ///
    /// The field keeps the place of the first one of that name.
    ///
    /// ```swift
    /// var headers: HeaderFields = ["Vary": "Accept"]
    /// headers.set("Origin", for: "Vary")
    /// ```
    public mutating func set(_ value: String?, for name: String) {
        guard let value else { return self.fields.removeAll { HeaderField.areSame($0.0, name) } }
        guard let index = self.fields.firstIndex(where: { HeaderField.areSame($0.0, name) }) else {
            return self.append(value, for: name)
        }
        self.fields[index].1 = value
        let rest = self.fields[(index + 1)...].filter { !HeaderField.areSame($0.0, name) }
        self.fields.replaceSubrange((index + 1)..., with: rest)
    }

    /// Continues the last field's value: old servers fold long values over several lines.
    package mutating func fold(_ continuation: String) {
        guard let last = self.fields.indices.last else { return }
        self.fields[last].1 += " " + continuation
    }

    /// The fields whose names, in lower case, are not among `names`.
    package func removing(_ names: Set<String>) -> HeaderFields {
        self.filter { !names.contains($0.name.lowercased()) }
    }

    /// The names that occur, in lower case.
    package var names: Set<String> { Set(self.fields.map { $0.0.lowercased() }) }
}

// MARK: - Hashable

extension HeaderFields: Hashable {
    public static func == (left: HeaderFields, right: HeaderFields) -> Bool { left.elementsEqual(right) }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.count)
        for field in self { hasher.combine(field) }
    }
}

// MARK: - RandomAccessCollection, RangeReplaceableCollection

extension HeaderFields: RandomAccessCollection, RangeReplaceableCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { self.fields.count }

    public subscript(position: Int) -> HeaderField {
        let (name, value) = self.fields[position]
        return HeaderField(name: name, value: value)
    }

    public mutating func replaceSubrange(_ range: Range<Int>, with fields: some Collection<HeaderField>) {
        self.fields.replaceSubrange(range, with: fields.lazy.map { ($0.name, $0.value) })
    }

    public mutating func append(_ field: HeaderField) {
        self.fields.append((field.name, field.value))
    }

    public mutating func reserveCapacity(_ count: Int) {
        self.fields.reserveCapacity(count)
    }
}

// MARK: - ExpressibleByDictionaryLiteral

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// Creates headers from pairs of name and value; a name may occur more than once.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.fields = elements
    }
}

// MARK: - CustomStringConvertible

extension HeaderField: CustomStringConvertible {
    /// The names whose values are credentials.
    private static let secrets: Set = ["authorization", "proxy-authorization", "cookie", "set-cookie"]

    /// `name: value`; the values of credentials and cookies are not shown.
    public var description: String {
        "\(self.name): \(Self.secrets.contains(self.name.lowercased()) ? "..." : self.value)"
    }
}

extension HeaderFields: CustomStringConvertible {
    /// The fields in their order, as `[name: value, name: value]`; the values of credentials and cookies are not shown.
    public var description: String { "[\(self.map(\.description).joined(separator: ", "))]" }
}
