extension Transfer {
    /// The codings that libcurl undoes, as far as it was built with them.
    private static let knownCodings: Set = ["identity", "gzip", "x-gzip", "deflate", "br", "zstd"]

    /// Whether the body has a content coding that nobody knows.
    ///
    /// Servers invent such names ("utf-8", "none") for bodies that are not coded at all, so the bytes are
    /// taken as they are.
    var hasUnknownCoding: Bool {
        guard self.hasHead else { return false }
        return self.responseHeaders.values(for: "Content-Encoding")
            .flatMap { $0.split(separator: ",") }
            .map { $0.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased() }
            .contains { !$0.isEmpty && !Self.knownCodings.contains($0) }
    }
}
