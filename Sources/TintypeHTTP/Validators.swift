// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The validator in an `ETag` field (RFC 9110, 8.8.3).
package struct EntityTag: Sendable, Hashable {
    /// The tag as it was written.
    package let text: String
    /// Whether the tag stands for bytes that are the same one by one: it is in quotes, and not marked as weak.
    package let isStrong: Bool
    /// The text between the quotes, or the whole of a tag without quotes, which servers send as well.
    private let value: Substring

    /// Reads a tag.
    package init(_ text: String) {
        let quoted = text.hasPrefix("W/\"") ? text.dropFirst(2) : text[...]
        let hasQuotes = quoted.utf8.count >= 2 && quoted.hasPrefix("\"") && quoted.hasSuffix("\"")
        self.text = text
        self.isStrong = hasQuotes && quoted.startIndex == text.startIndex
        self.value = hasQuotes ? quoted.dropFirst().dropLast() : quoted
    }

    /// Whether both are strong and the same (RFC 9110, 8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        self.isStrong && other.isStrong && self.value == other.value
    }

    /// Whether they are the same, weak or not.
    package func matchesWeakly(_ other: EntityTag) -> Bool {
        self.value == other.value
    }
}

/// The values that distinguish versions of a resource, and by which a cache asks whether a stored version has changed
/// (RFC 9110, 8.8, and RFC 9111, 4.3).
package struct Validators: Sendable, Hashable {
    /// Dates that are further apart than this are told apart by the clock of any server.
    static let clockDoubt: TimeInterval = 60

    package let tag: EntityTag?
    /// The date of modification, as it was written.
    package let lastModified: String?

    package init(etag: String?, lastModified: String?) {
        self.tag = etag.map { EntityTag($0) }
        self.lastModified = lastModified
    }

    /// The validators in a response.
    package init(_ headers: HeaderFields) {
        self.init(etag: headers["ETag"], lastModified: headers["Last-Modified"])
    }

    /// Returns the strong validator of a response, as `If-Range` needs it (RFC 9110, 13.1.5); `nil` without one.
    ///
    /// An entity tag is strong unless it is marked as weak. A date of modification is strong only if it is well before
    /// the response, because the resource may change twice in a second (8.8.2.2). `now` tells centuries, see
    /// ``HTTPDate``.
    package static func strong(in headers: HeaderFields, now: Date) -> String? {
        let validators = Validators(headers)
        if let tag = validators.tag { return tag.isStrong && FieldText.canBeReturned(tag.text) ? tag.text : nil }
        guard let text = validators.lastModified, let modified = HTTPDate.parse(text, now: now),
            let date = headers["Date"].flatMap({ HTTPDate.parse($0, now: now) })
        else { return nil }
        let isSure = date.timeIntervalSince(modified) >= self.clockDoubt
        return isSure && FieldText.canBeReturned(text) ? text : nil
    }

    /// The fields that make a request conditional: the tag, which counts first, and the date for servers that
    /// know no tags.
    package var conditions: HeaderFields {
        var fields = HeaderFields()
        // A star would stand for whatever the origin has now.
        if let tag, tag.text != "*", FieldText.canBeReturned(tag.text) { fields.append(tag.text, for: "If-None-Match") }
        if let lastModified, FieldText.canBeReturned(lastModified) {
            fields.append(lastModified, for: "If-Modified-Since")
        }
        return fields
    }

    /// Whether a 304 with the validators `other` is about the response with these (RFC 9111, 4.3.4).
    ///
    /// One without a tag is: the request named no other response, and a date is too weak to contradict.
    package func areSelected(by other: Validators) -> Bool {
        guard let tag = other.tag else { return true }
        guard let own = self.tag else { return false }
        return tag.isStrong ? own.matchesStrongly(tag) : own.matchesWeakly(tag)
    }
}
