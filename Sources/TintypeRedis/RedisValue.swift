// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A reply of a Redis server (RESP 2), except errors, which are thrown as ``RedisError``.
public enum RedisValue: Sendable, Equatable {
    /// The value does not exist.
    case null
    /// A number, such as the result of `INCR`.
    case integer(Int64)
    /// Bytes, such as the result of `GET`.
    case bytes(Data)
    /// A short text that is not the value of a key, such as `OK`.
    case status(String)
    /// Several values, such as the result of `MGET`.
    case array([RedisValue])

    /// The bytes of ``bytes(_:)`` and ``status(_:)``.
    public var data: Data? {
        switch self {
        case .bytes(let data): data
        case .status(let text): Data(text.utf8)
        case .null, .integer, .array: nil
        }
    }

    /// The text of ``bytes(_:)`` and ``status(_:)``; bytes that are not UTF-8 become U+FFFD.
    public var text: String? { self.data.map { String(decoding: $0, as: UTF8.self) } }

    /// The number of ``integer(_:)``, or of bytes that are a decimal number.
    public var number: Int64? {
        if case .integer(let number) = self { return number }
        return self.text.flatMap { Int64($0) }
    }

    /// The elements of ``array(_:)``.
    public var elements: [RedisValue]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }
}
