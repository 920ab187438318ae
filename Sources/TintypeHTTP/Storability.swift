/// Which responses a cache may store (RFC 9111, 3).
package enum Storability {
    /// The statuses that may be stored without a word about freshness (RFC 9110, 15.1).
    private static let cacheableByDefault: Set = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Whether the response of a GET without a range may be stored.
    package static func allows(_ record: ResponseRecord, requestHeaders: HeaderFields, isShared: Bool) -> Bool {
        let response = CacheControl(record.values(for: "Cache-Control"))
        let request = CacheControl(requestHeaders.values(for: "Cache-Control"))
        // A part is not the whole, and a 304 is no body.
        guard 200..<600 ~= record.status, record.status != 206, record.status != 304 else { return false }
        guard !request.has("no-store") else { return false }
        if response.has("must-understand") {
            // A cache that understands the status disregards `no-store` (RFC 9111, 5.2.2.3).
            guard self.cacheableByDefault.contains(record.status) else { return false }
        } else if response.has("no-store") {
            return false
        }
        if isShared {
            // Even one about some fields is obeyed as a whole.
            guard !response.has("private") else { return false }
            let isForAll = ["public", "s-maxage", "must-revalidate"].contains { response.has($0) }
            guard requestHeaders["Authorization"] == nil || isForAll else { return false }
        }
        let isExplicit =
            response.has("public") || response.has("max-age") || !record.values(for: "Expires").isEmpty
            || (isShared ? response.has("s-maxage") : response.has("private"))
        return isExplicit || self.cacheableByDefault.contains(record.status)
    }
}
