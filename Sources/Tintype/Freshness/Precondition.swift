import FoundationEssentials
import TintypeCaching
import TintypeDownloading

/// The conditions that a caller put into its own request.
enum Precondition {
    /// What a cache can't decide about, so that it steps aside: parts, and conditions for changes.
    private static let opaque = ["Range", "If-Range", "If-Match", "If-Unmodified-Since"]

    /// Whether the request is one that a cache hands on, both ways, untouched.
    static func bypassesCache(_ headers: HTTPHeaders) -> Bool {
        self.opaque.contains { headers[$0] != nil }
    }

    /// Whether the caller has a copy of its own and asks for news only.
    static func isConditional(_ headers: HTTPHeaders) -> Bool {
        headers["If-None-Match"] != nil || headers["If-Modified-Since"] != nil
    }

    /// Whether a stored response tells the caller that its own copy is current (RFC 9111, 4.3.2).
    static func isNotModified(_ headers: HTTPHeaders, stored metadata: EntryMetadata, now: Date) -> Bool {
        let validators = Validators(metadata)
        let tags = headers.values(for: "If-None-Match")
        // A tag takes precedence over a date (RFC 9110, 13.2.2).
        if !tags.isEmpty {
            let tags = FieldList.elements(of: tags)
            guard !tags.contains("*") else { return true }
            guard let own = validators.etag.map({ EntityTag($0) }) else { return false }
            return tags.contains { EntityTag($0).matchesWeakly(own) }
        }
        guard let since = headers["If-Modified-Since"].flatMap({ HTTPDate.parse($0, now: now) }) else { return false }
        // Without a date of change, that of the response stands for it.
        let changed = [validators.lastModified, metadata.response?.values(for: "Date").first].lazy
            .compactMap { $0.flatMap { HTTPDate.parse($0, now: now) } }.first
        guard let date = changed ?? metadata.response?.responseDate ?? metadata.responseDate else { return false }
        return date <= since
    }
}
