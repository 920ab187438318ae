// SPDX-License-Identifier: Apache-2.0

import TintypeImgproxy

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
        guard let bytes = Hexadecimal.bytes(text.utf8), !bytes.isEmpty else {
            throw SettingError("The \(name) is not hexadecimal; write two of the digits 0-9 and a-f for each byte.")
        }
        return bytes
    }
}
