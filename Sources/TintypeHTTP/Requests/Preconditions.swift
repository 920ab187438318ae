// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The conditions of a request for a stored response (RFC 9110, section 13).
package enum Preconditions {
    package enum Result: Sendable, Hashable {
        /// Send the response.
        case proceed
        /// The client has the response already. Answer with 304.
        case notModified
        /// The client wants another response than this one. Answer with 412.
        case failed
    }

    /// Compares the conditions with the validators of the response.
    ///
    /// `If-Unmodified-Since` counts only without `If-Match`, and `If-Modified-Since` only without `If-None-Match`. A date
    /// counts only if it is valid. `now` tells centuries, see ``HTTPDate``.
    package static func evaluate(_ head: RequestHead, entityTag: String?, lastModified: Date?, now: Date) -> Result {
        guard head.method == .get || head.method == .head else { return .proceed }
        func isModified(since name: String) -> Bool? {
            guard let lastModified, let text = head.onlyValue(for: name), let date = HTTPDate.parse(text, now: now)
            else { return nil }
            return lastModified.timeIntervalSince1970.rounded(.down) > date.timeIntervalSince1970
        }
        // A response without a tag exists, so `*` matches it.
        let tag = entityTag ?? ""
        let wanted = head.values(for: "If-Match")
        let isWanted =
            wanted.isEmpty
            ? isModified(since: "If-Unmodified-Since") != true
            : wanted.contains { EntityTagList.matches($0, tag, strongly: true) }
        guard isWanted else { return .failed }
        let known = head.values(for: "If-None-Match")
        let isKnown =
            known.isEmpty
            ? isModified(since: "If-Modified-Since") == false
            : known.contains { EntityTagList.matches($0, tag) }
        return isKnown ? .notModified : .proceed
    }
}

/// The value of `If-None-Match` or `If-Match`: `*`, or a list of entity tags (RFC 9110, 13.1).
enum EntityTagList {
    /// Returns whether `list` has `*` or a tag that is the same as `tag`, weak or not; with `strongly`, none may be weak.
    ///
    /// Tags have no escapes, unlike quoted strings. Anything else in the list ends it.
    static func matches(_ list: String, _ tag: String, strongly: Bool = false) -> Bool {
        let opaque = strongly && self.isWeak(tag.utf8[...]) ? nil : self.opaque(tag.utf8[...])
        var rest = ASCIIText.trimmed(list.utf8[...])
        if rest.elementsEqual("*".utf8) { return true }
        while true {
            rest = rest.drop { ASCIIText.isSpace($0) || $0 == UInt8(ascii: ",") }
            let element = self.opaque(rest)
            guard let element else { return false }
            if let opaque, element.elementsEqual(opaque), !strongly || !self.isWeak(rest) { return true }
            rest = rest[element.endIndex...].dropFirst()
            guard rest.first.map({ ASCIIText.isSpace($0) || $0 == UInt8(ascii: ",") }) ?? false else { return false }
        }
    }

    private static func isWeak(_ text: Substring.UTF8View) -> Bool { text.starts(with: "W/".utf8) }

    /// Returns the text between the quotes of the tag at the front of `text`.
    private static func opaque(_ text: Substring.UTF8View) -> Substring.UTF8View? {
        var text = text
        if self.isWeak(text) { text = text.dropFirst(2) }
        guard text.popFirst() == UInt8(ascii: "\""), let end = text.firstIndex(of: UInt8(ascii: "\"")) else {
            return nil
        }
        return text[..<end]
    }
}
