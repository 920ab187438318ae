// SPDX-License-Identifier: Apache-2.0

import Tintype

/// The keys of the objects in a cold store: `PREFIX/ROOT/ENTRY`, with the digests of the family's root and of the
/// entry.
///
/// The name of a derived entry ends with `-REVISION` if there is a revision.
struct ObjectNames: Sendable {
    let prefix: String
    let revision: String

    /// Returns the start of all keys of a family.
    func family(of key: CacheKey) -> String {
        (self.prefix.isEmpty ? "" : self.prefix + "/") + key.root.digest + "/"
    }

    /// Returns the key of the object of an entry.
    func object(of key: CacheKey) -> String {
        self.family(of: key) + key.digest + (key.isDerived && !self.revision.isEmpty ? "-" + self.revision : "")
    }

    /// Whether a listed key is the key of an object that this library stores in the family, with any revision.
    static func isObject(_ key: String, of family: String) -> Bool {
        guard key.utf8.starts(with: family.utf8) else { return false }
        let name = key.utf8.dropFirst(family.utf8.count)
        let rest = name.dropFirst(64)
        return name.count >= 64 && name.prefix(64).allSatisfy(self.isDigit)
            && (rest.isEmpty || rest.first == UInt8(ascii: "-") && self.isRevision(String(rest.dropFirst()) ?? ""))
    }

    /// Whether a text can be a revision: letters, digits, `.`, `_` and `-`, which no store and no URL changes.
    static func isRevision(_ text: String) -> Bool {
        1...64 ~= text.utf8.count
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"):
                    true
                default: "-._".utf8.contains(byte)
                }
            }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte
    }
}
