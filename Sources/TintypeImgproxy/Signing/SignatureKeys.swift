// SPDX-License-Identifier: Apache-2.0

/// A key and a salt that sign URLs.
package struct SignatureKeys: Sendable, Hashable {
    package let key: [UInt8]
    package let salt: [UInt8]

    package init(key: [UInt8], salt: [UInt8]) {
        self.key = key
        self.salt = salt
    }

    /// Returns the pairs of two comma-separated lists of hexadecimal texts: the first key with the first salt, and so on.
    ///
    /// Two empty lists have no pairs. Throws if a list is longer than the other or has a text that is not hexadecimal.
    package static func pairs(keys: String, salts: String) throws(AddressSettingsError) -> [SignatureKeys] {
        let keys = try self.list(keys, name: "key")
        let salts = try self.list(salts, name: "salt")
        guard keys.count == salts.count else {
            throw AddressSettingsError(
                message: "There are \(keys.count) keys and \(salts.count) salts. Give one salt for each key."
            )
        }
        return zip(keys, salts).map { SignatureKeys(key: $0, salt: $1) }
    }

    private static func list(_ text: String, name: String) throws(AddressSettingsError) -> [[UInt8]] {
        guard !text.isEmpty else { return [] }
        var list: [[UInt8]] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let bytes = Hexadecimal.bytes(part.utf8), !bytes.isEmpty else {
                // The text is a secret, so the message does not show it.
                throw AddressSettingsError(
                    message:
                        "The \(name) at position \(list.count + 1) is not hexadecimal. Use pairs of the digits 0-9 a-f."
                )
            }
            list.append(bytes)
        }
        return list
    }
}
