// SPDX-License-Identifier: Apache-2.0

/// Header fields of a response as the bytes of their lines.
///
/// Every line is valid: a field that would break the head cannot be added.
package struct FieldLines: Sendable, Equatable {
    private(set) var bytes: [UInt8] = []

    package init() {}

    /// Adds a field.
    ///
    /// Returns `false`, and adds nothing, if `name` is not a token or `value` has a control character.
    @discardableResult
    package mutating func append(_ value: String, for name: String) -> Bool {
        guard FieldText.isToken(name), FieldText.isValue(value) else { return false }
        self.bytes.append(contentsOf: name.utf8)
        self.bytes.append(UInt8(ascii: ":"))
        self.bytes.append(UInt8(ascii: " "))
        self.bytes.append(contentsOf: value.utf8)
        self.bytes.append(UInt8(ascii: "\r"))
        self.bytes.append(UInt8(ascii: "\n"))
        return true
    }

    /// Adds a field whose value is a number.
    @discardableResult
    package mutating func append(_ value: Int, for name: String) -> Bool {
        self.append(String(value), for: name)
    }

    /// The fields as names and values.
    package var headerFields: HeaderFields {
        var fields = HeaderFields()
        for line in String(decoding: self.bytes, as: UTF8.self).split(separator: "\r\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { fields.append(String(parts[1].dropFirst()), for: String(parts[0])) }
        }
        return fields
    }
}
