// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The part of a response that a request selects with `Range` (RFC 9110, section 14).
package enum RangeSelection: Sendable, Hashable {
    /// Answer with 200 and all bytes.
    case whole
    /// Answer with 206 and these bytes.
    case part(ByteRange)
    /// Answer with 416.
    case unsatisfiable

    /// Reads the fields `Range` and `If-Range` of a request for a response of `length` bytes.
    ///
    /// Only `GET` selects parts. The selection is the whole response if the range is malformed, has another unit or
    /// several parts, or if `If-Range` does not name the response. `now` tells centuries, see ``HTTPDate``.
    package init(_ head: RequestHead, length: Int, entityTag: String?, lastModified: Date?, now: Date) {
        guard head.method == .get, let text = head.onlyValue(for: "Range") else {
            self = .whole
            return
        }
        let conditions = head.values(for: "If-Range")
        let isSelected =
            conditions.count <= 1
            && conditions.allSatisfy {
                Self.names($0, entityTag: entityTag, lastModified: lastModified, now: now)
            }
        self = isSelected ? RangeSelection(text, length: length) : .whole
    }

    /// Reads the value of `Range`.
    package init(_ text: String, length: Int) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")),
            ASCIIText.areSame(text.utf8[..<equals], "bytes")
        else {
            self = .whole
            return
        }
        let parts = FieldList.elements(of: [String(text[text.utf8.index(after: equals)...])])
        guard parts.count == 1, let dash = parts[0].utf8.firstIndex(of: UInt8(ascii: "-")) else {
            self = .whole
            return
        }
        let first = parts[0][..<dash]
        let last = parts[0][parts[0].utf8.index(after: dash)...]
        switch (first.isEmpty, last.isEmpty) {
        case (true, true): self = .whole
        case (true, false): self = Self.suffix(Self.number(last), length: length)
        case (false, true): self = Self.part(from: Self.number(first), through: .max, length: length)
        case (false, false): self = Self.part(from: Self.number(first), through: Self.number(last), length: length)
        }
    }

    /// The value of `Content-Range` for a response of `length` bytes; `nil` for the whole response.
    package func contentRange(length: Int) -> String? {
        switch self {
        case .whole: nil
        case .part(let part): "bytes \(part.offset)-\(part.offset + part.length - 1)/\(length)"
        case .unsatisfiable: "bytes */\(length)"
        }
    }

    private static func part(from first: Int?, through last: Int?, length: Int) -> RangeSelection {
        guard let first, let last, first <= last else { return .whole }
        guard first < length else { return .unsatisfiable }
        return .part(ByteRange(offset: first, length: min(last, length - 1) - first + 1))
    }

    private static func suffix(_ count: Int?, length: Int) -> RangeSelection {
        guard let count else { return .whole }
        guard count > 0 else { return .unsatisfiable }
        // No Content-Range can name an empty part.
        guard length > 0 else { return .whole }
        return .part(ByteRange(offset: max(0, length - count), length: min(count, length)))
    }

    /// Returns a number that is larger than every length if no integer holds it, and `nil` for anything except digits.
    private static func number(_ text: Substring) -> Int? {
        FieldText.isNumber(text) ? Int(text) ?? .max : nil
    }

    /// Returns whether a value of `If-Range` names the response, by a strong entity tag or by a date that is old enough to
    /// be a strong validator (RFC 9110, 13.1.5).
    private static func names(_ value: String, entityTag: String?, lastModified: Date?, now: Date) -> Bool {
        if let entityTag, EntityTag(value).matchesStrongly(EntityTag(entityTag)) { return true }
        guard let lastModified, let date = HTTPDate.parse(value, now: now) else { return false }
        return date.timeIntervalSince1970 == lastModified.timeIntervalSince1970.rounded(.down)
            && now.timeIntervalSince(date) >= Validators.clockDoubt
    }
}

/// A part of a response, with at least one byte.
package struct ByteRange: Sendable, Hashable {
    package let offset: Int
    package let length: Int

    package init(offset: Int, length: Int) {
        self.offset = offset
        self.length = length
    }
}
