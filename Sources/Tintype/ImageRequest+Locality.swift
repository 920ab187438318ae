import FoundationEssentials

extension ImageRequest {
    /// The URL for messages: without credentials, and cut where it is long.
    var displayURL: String {
        let text = self.url.withoutCredentials.text
        return text.utf8.count > 200 ? "\(text.prefix(200))..." : text
    }
}
