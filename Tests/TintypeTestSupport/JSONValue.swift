// SPDX-License-Identifier: Apache-2.0

/// Any JSON, for documents whose members have several types.
public enum JSONValue: Decodable, Sendable, Hashable, ExpressibleByIntegerLiteral, ExpressibleByStringLiteral {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public init(integerLiteral value: Int) { self = .number(Double(value)) }

    public init(stringLiteral value: String) { self = .string(value) }

    public subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    public var string: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    public var number: Double? {
        guard case .number(let value) = self else { return nil }
        return value
    }

    public var array: [JSONValue] {
        guard case .array(let values) = self else { return [] }
        return values
    }

    public var isTrue: Bool { self == .bool(true) }
    public var isFalse: Bool { self == .bool(false) }
}
