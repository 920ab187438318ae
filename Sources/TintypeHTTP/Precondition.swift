package import FoundationEssentials

/// The conditions that a caller put into its own request.
package enum Precondition {
    /// What a cache can't decide about, so that it steps aside: parts, and conditions for changes.
    private static let opaque = ["Range", "If-Range", "If-Match", "If-Unmodified-Since"]

    /// Whether the request is one that a cache hands on, both ways, untouched.
    package static func bypassesCache(_ headers: HeaderFields) -> Bool {
        self.opaque.contains { headers[$0] != nil }
    }

    /// Whether the caller has a copy of its own and asks for news only.
    package static func isConditional(_ headers: HeaderFields) -> Bool {
        headers["If-None-Match"] != nil || headers["If-Modified-Since"] != nil
    }

    /// Whether a stored response tells the caller that its own copy is current (RFC 9111, 4.3.2).
    ///
    /// `storedDate` is that of the stored response; it stands for a date of modification where there is none.
    package static func isNotModified(
        _ headers: HeaderFields,
        stored validators: Validators,
        storedDate: Date?,
        now: Date
    ) -> Bool {
        let tags = headers.values(for: "If-None-Match")
        // A tag takes precedence over a date (RFC 9110, 13.2.2).
        if !tags.isEmpty {
            let tags = FieldList.elements(of: tags)
            guard !tags.contains("*") else { return true }
            guard let own = validators.tag else { return false }
            return tags.contains { EntityTag($0).matchesWeakly(own) }
        }
        let changed = validators.lastModified.flatMap { HTTPDate.parse($0, now: now) } ?? storedDate
        guard let changed, let since = headers["If-Modified-Since"].flatMap({ HTTPDate.parse($0, now: now) })
        else { return false }
        return changed <= since
    }
}
