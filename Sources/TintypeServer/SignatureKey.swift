// SPDX-License-Identifier: Apache-2.0

/// A key and a salt that sign URLs.
///
/// Descriptions show neither of them.
public struct SignatureKey: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The bytes of the key.
    public let key: [UInt8]
    /// The bytes that come before the path when it is signed.
    public let salt: [UInt8]

    /// Reads a key and its salt in hexadecimal digits, two for each byte.
    ///
    /// ```swift
    /// let key = try SignatureKey(key: "943b421c9eb07c83", salt: "520f986b998682f1")
    /// ```
    ///
    /// - Throws: ``SettingError`` if a text is empty or has other characters. The message does not quote it.
    public init(key: String, salt: String) throws(SettingError) {
        self.key = try Self.bytes(key, name: "key")
        self.salt = try Self.bytes(salt, name: "salt")
    }

    public var description: String { "a key for signatures" }

    public var debugDescription: String { self.description }

    private static func bytes(_ text: String, name: String) throws(SettingError) -> [UInt8] {
        let digits = text.utf8.compactMap { Self.value(of: $0) }
        guard !digits.isEmpty, digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else {
            throw SettingError("The \(name) is not hexadecimal; write two of the digits 0-9 and a-f for each byte.")
        }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
