import TintypeHTTP

/// What a transfer that goes on where another broke off asks for, and has already.
struct Resumption {
    /// Where the bytes came from: the others must come from there as well.
    let source: [UInt8]
    /// The strong validator that the other part must have as well.
    let validator: String
    /// The bytes that are here.
    let offset: Int
    /// The bytes of the whole.
    let total: Int
    /// The fields that came with the bytes that are here.
    let wholeHeaders: HeaderFields

    /// The fields that ask for the rest, or for everything if it is another version by now.
    var headers: HeaderFields {
        ["Range": "bytes=\(self.offset)-", "If-Range": self.validator]
    }

    /// Whether a 206 response with these fields continues the bytes that are here.
    ///
    /// `If-Range` has made sure already, but a server that is wrong about it must not mix two versions: a
    /// part without the validator counts for nothing (RFC 9110, 15.3.7.3).
    func isContinued(by headers: HeaderFields) -> Bool {
        guard headers.values(for: "Content-Range").count == 1,
            let range = headers["Content-Range"].flatMap({ ContentRange($0) }),
            range.first == self.offset, range.total == self.total,
            // Several parts in one body, with lines of their own around each (RFC 9110, 14.6).
            !headers.values(for: "Content-Type").contains(where: { $0.lowercased().hasPrefix("multipart/byteranges") })
        else { return false }
        let isTag = self.validator.hasPrefix("\"")
        return headers.values(for: isTag ? "ETag" : "Last-Modified") == [self.validator]
    }

    /// The fields of the whole that a part with these fields completes: its own take the place of older ones
    /// (RFC 9110, 15.3.7.3).
    func completed(by headers: HeaderFields) -> HeaderFields {
        var whole = self.wholeHeaders.removing(headers.names) + headers.removing(Self.partNames)
        whole.append("\(self.total)", for: "Content-Length")
        return whole
    }

    /// Those of a response's fields that are about the whole, and hold for longer than one message.
    static func fieldsOfWhole(_ headers: HeaderFields) -> HeaderFields {
        headers.removing(self.partNames.union(self.messageNames))
    }

    private static let partNames: Set<String> = ["content-range", "content-length"]
    private static let messageNames: Set<String> = [
        "age", "connection", "date", "keep-alive", "proxy-authenticate", "proxy-connection", "set-cookie",
        "set-cookie2", "trailer", "transfer-encoding", "upgrade", "www-authenticate",
    ]
}
