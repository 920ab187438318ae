// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The conditions of a request for a stored response (RFC 9110, section 13).
package enum Preconditions {
    package enum Result: Sendable, Hashable {
        /// Send the response.
        case proceed
        /// The client has the response already. Answer with 304.
        case notModified
    }

    /// Compares the conditions with the validators of the response.
    ///
    /// `If-Modified-Since` counts only without `If-None-Match`, and only if it is a valid date. `now` tells centuries, see
    /// ``HTTPDate``.
    package static func evaluate(_ head: RequestHead, entityTag: String?, lastModified: Date?, now: Date) -> Result {
        guard head.method == .get || head.method == .head else { return .proceed }
        let lists = head.values(for: "If-None-Match")
        guard lists.isEmpty else {
            // A response without a tag exists, so `*` matches it.
            let isMatched = lists.contains { EntityTagList.matches($0, entityTag ?? "") }
            return isMatched ? .notModified : .proceed
        }
        guard let lastModified, let text = head.onlyValue(for: "If-Modified-Since"),
            let date = HTTPDate.parse(text, now: now)
        else { return .proceed }
        return lastModified.timeIntervalSince1970.rounded(.down) <= date.timeIntervalSince1970 ? .notModified : .proceed
    }
}
