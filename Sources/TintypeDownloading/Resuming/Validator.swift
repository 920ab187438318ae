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
            return isQuoted && FieldText.canBeReturned(tag) ? tag : nil
        }
        guard let modified = headers["Last-Modified"], let modifiedDate = HTTPDate.parse(modified),
            let date = headers["Date"].flatMap(HTTPDate.parse)
        else { return nil }
        let isSure = date.timeIntervalSince(modifiedDate) >= self.clockDoubt
        return isSure && FieldText.canBeReturned(modified) ? modified : nil
    }
}
