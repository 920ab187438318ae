/// What a transfer that goes on where another broke off asks for, and has already.
struct Resumption {
    /// The strong validator that the other part must have as well.
    let validator: String
    /// The bytes that are here.
    let offset: Int
    /// The bytes of the whole.
    let total: Int

    /// The fields that ask for the rest, or for everything if it is another version by now.
    var headers: HTTPHeaders {
        ["Range": "bytes=\(self.offset)-", "If-Range": self.validator]
    }

    /// Whether a 206 response with these fields continues the bytes that are here.
    func isContinued(by headers: HTTPHeaders) -> Bool {
        guard headers.values(for: "Content-Range").count == 1,
            let range = headers["Content-Range"].flatMap({ ContentRange($0) }),
            range.first == self.offset, range.total == self.total
        else { return false }
        // If-Range has made sure already, but a server that is wrong about it must not mix two versions.
        guard self.validator.hasPrefix("\"") else {
            return headers["Last-Modified"].map { $0 == self.validator } ?? true
        }
        return headers["ETag"].map { $0 == self.validator } ?? true
    }
}
