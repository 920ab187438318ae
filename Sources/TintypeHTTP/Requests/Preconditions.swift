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
