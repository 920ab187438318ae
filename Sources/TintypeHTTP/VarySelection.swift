// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto

/// The request fields that a response's `Vary` names (RFC 9111, 4.1).
package enum VarySelection {
    /// The fields whose values are compared without regard to case, because their syntax says so.
    private static let caseless: Set<String> = ["accept-encoding", "accept-language", "accept-charset"]

    /// Returns the names in `Vary` fields, in lower case and sorted, each once; `nil` if one of them is `*`.
    package static func names(in vary: [String]) -> [String]? {
        let names = Set(FieldList.elements(of: vary).map { $0.lowercased() })
        return names.contains("*") ? nil : names.sorted()
    }

    /// Returns a digest of the fields called `names` in a request; `nil` without names.
    ///
    /// Several fields of a name are one list, white space around its commas does not count, and an absent field differs
    /// from an empty one.
    package static func digest(of names: [String], in headers: HeaderFields) -> String? {
        guard !names.isEmpty else { return nil }
        let lines = names.map { name in
            let values = headers.values(for: name)
            guard !values.isEmpty else { return "\(name)\n" }
            let list = FieldList.elements(of: values).joined(separator: ",")
            return "\(name): \(self.caseless.contains(name) ? list.lowercased() : list)\n"
        }
        return self.digest(lines.joined())
    }

    /// The SHA-256 of `text` in lower-case hexadecimal digits.
    private static func digest(_ text: String) -> String {
        var bytes = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        let text = Array(text.utf8)
        _ = SHA256(text, text.count, &bytes)
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

extension ResponseRecord {
    /// Whether the response may select this record's representation for `headers` (RFC 9111, 4.1).
    package func isSelected(by headers: HeaderFields) -> Bool {
        guard let names = VarySelection.names(in: self.values(for: "Vary")) else {
            // Nothing selects `Vary: *`; the origin can still say that it is current.
            return true
        }
        return VarySelection.digest(of: names, in: headers) == self.selectionDigest
    }
}

/// The request fields that state wishes, and never identify the user.
///
/// Only they may go to another origin. Only they may differ if one stored response answers two requests without a
/// `Vary` that names them. A list of identifying fields would miss the next `X-User`.
package enum WishFields {
    private static let names: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "dnt", "if-modified-since",
        "if-none-match", "pragma", "range", "save-data", "sec-gpc", "user-agent",
    ]

    /// Whether a field, its name in lower case, is one of them.
    package static func contains(_ name: String) -> Bool {
        self.names.contains(name)
    }
}
