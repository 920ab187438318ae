/// The header fields of a request or a response, in their order.
///
/// Names are compared without regard to ASCII case, and a name may occur more than once.
public struct HTTPHeaders: Sendable {
    private var fields: [HTTPField]

    /// Creates headers with no field.
    public init() {
        self.fields = []
    }

    /// The value of the first field called `name`; setting replaces every field of that name.
    public subscript(name: String) -> String? {
        get { self.fields.first { $0.isNamed(name) }?.value }
        set { self.set(newValue, for: name) }
    }

    /// The values of all fields called `name`, in their order.
    public func values(for name: String) -> [String] {
        self.fields.filter { $0.isNamed(name) }.map(\.value)
    }

    /// Adds a field after the others, whether or not the name occurs already.
    public mutating func append(_ value: String, for name: String) {
        self.fields.append(HTTPField(name: name, value: value))
    }

    /// Makes `value` the only one of `name`; `nil` removes the name.
    ///
    /// The field keeps the place of the first one of that name.
    public mutating func set(_ value: String?, for name: String) {
        let index = self.fields.firstIndex { $0.isNamed(name) }
        guard let value else {
            if index != nil { self.fields.removeAll { $0.isNamed(name) } }
            return
        }
        guard let index else {
            self.append(value, for: name)
            return
        }
        self.fields[index].value = value
        let rest = self.fields[(index + 1)...].filter { !$0.isNamed(name) }
        self.fields.replaceSubrange((index + 1)..., with: rest)
    }

    /// Continues the last field's value: old servers fold long values over several lines.
    mutating func fold(_ continuation: String) {
        guard let last = self.fields.indices.last else { return }
        self.fields[last].value += " " + continuation
    }

    mutating func removeAll() {
        self.fields.removeAll(keepingCapacity: true)
    }

    mutating func reserveCapacity(_ count: Int) {
        self.fields.reserveCapacity(count)
    }
}

// MARK: - Hashable

/// Equal headers have equal fields in the same order; the case of names does not count.
extension HTTPHeaders: Hashable {}

// MARK: - RandomAccessCollection

extension HTTPHeaders: RandomAccessCollection {
    /// A field: its name as it was given or received, and its value.
    public typealias Element = (name: String, value: String)

    public var startIndex: Int { 0 }
    public var endIndex: Int { self.fields.count }

    public subscript(position: Int) -> Element {
        (self.fields[position].name, self.fields[position].value)
    }
}

// MARK: - ExpressibleByDictionaryLiteral

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    /// Creates headers from pairs of name and value; a name may occur more than once.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.fields = elements.map { HTTPField(name: $0, value: $1) }
    }
}
