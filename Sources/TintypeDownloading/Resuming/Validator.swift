import FoundationEssentials

/// What tells two versions of a resource apart for sure, as `If-Range` needs it (RFC 9110, section 13.1.5).
enum Validator {
    /// Dates that are further apart than this are told apart by the clock of any server.
    private static let clockDoubt: TimeInterval = 60

    /// The strong validator of a response, or `nil` where it has none.
    ///
    /// An entity tag is strong unless marked as weak; a date of modification is only where it was well before
    /// the response, or the resource may have changed twice in it (section 8.8.2.2).
    static func strong(in headers: HTTPHeaders) -> String? {
        if let tag = headers["ETag"] {
            let isQuoted = tag.hasPrefix("\"") && tag.utf8.count >= 2 && tag.hasSuffix("\"")
            return isQuoted && Self.isSendable(tag) ? tag : nil
        }
        guard let modified = headers["Last-Modified"], let modifiedDate = HTTPDate.parse(modified),
            let date = headers["Date"].flatMap(HTTPDate.parse)
        else { return nil }
        return date.timeIntervalSince(modifiedDate) >= self.clockDoubt && Self.isSendable(modified) ? modified : nil
    }

    /// What an origin sent may end the line that it is sent back in: a carriage return alone does for some servers.
    private static func isSendable(_ value: String) -> Bool {
        value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
