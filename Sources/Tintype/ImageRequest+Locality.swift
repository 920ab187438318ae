import FoundationEssentials

extension ImageRequest {
    /// Whether the bytes need no network: a `file:` or `data:` URL.
    var isLocal: Bool {
        let scheme = self.url.scheme?.lowercased()
        return scheme == "file" || scheme == "data"
    }

    /// The URL for messages: without credentials, and cut where it is long.
    var displayURL: String {
        let text = self.url.withoutCredentials.text
        return text.utf8.count > 200 ? "\(text.prefix(200))..." : text
    }
}
