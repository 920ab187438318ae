// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto

/// A key and a salt that sign URLs.
package struct SignatureKeys: Sendable, Hashable {
    package let key: [UInt8]
    package let salt: [UInt8]

    package init(key: [UInt8], salt: [UInt8]) {
        self.key = key
        self.salt = salt
    }
}

/// Signs URLs, and checks their signatures.
package struct URLSigner: Sendable {
    private let keys: [SignatureKeys]
    private let size: Int

    /// The length of a SHA-256 digest in bytes.
    private static let longestSize = 32

    /// Creates a signer.
    ///
    /// The first of the `keys` signs, and each of them may have made a valid signature. A signature has `size` bytes
    /// before its encoding, from 1 to 32.
    package init(keys: [SignatureKeys], size: Int = 32) throws(AddressSettingsError) {
        guard !keys.isEmpty else {
            throw AddressSettingsError(message: "There are no keys. Give at least one key with its salt.")
        }
        guard 1...Self.longestSize ~= size else {
            throw AddressSettingsError(message: "The size of signatures is \(size). Give a number from 1 to 32.")
        }
        self.keys = keys
        self.size = size
    }

    /// Returns a path with its signature in front.
    ///
    /// `path` starts with a slash, and has the options and the source.
    package func sign(_ path: String) -> String {
        "/" + String(decoding: self.signature(of: Array(path.utf8), with: self.keys[0]), as: UTF8.self) + path
    }

    /// Returns whether one of the keys made `signature` for `path`.
    ///
    /// The time that this takes does not reveal how much of the signature is right.
    func accepts(_ signature: some Collection<UInt8>, of path: [UInt8]) -> Bool {
        var isEqual = false
        for keys in self.keys {
            let expected = self.signature(of: path, with: keys)
            // No early exit: the time would reveal which of the keys was right.
            isEqual = ConstantTime.isEqual(signature, expected) || isEqual
        }
        return isEqual
    }

    /// Returns the signature of `path` in the Base64 alphabet for URLs.
    private func signature(of path: [UInt8], with keys: SignatureKeys) -> [UInt8] {
        let message = keys.salt + path
        var code = [UInt8](repeating: 0, count: Self.longestSize)
        // HMAC fails only if memory runs out. The length then stays 0, and an empty signature equals no other.
        var count: UInt32 = 0
        _ = HMAC(EVP_sha256(), keys.key, CInt(keys.key.count), message, message.count, &code, &count)
        return Base64URL.encode(code.prefix(min(self.size, Int(count))))
    }
}

/// Comparisons whose time depends only on the lengths.
package enum ConstantTime {
    /// Returns whether two texts are equal and not empty.
    package static func isEqual(_ first: some Collection<UInt8>, _ second: some Collection<UInt8>) -> Bool {
        guard first.count == second.count, !first.isEmpty else { return false }
        return zip(first, second).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
