import FoundationEssentials

extension URL {
    /// The text of the URL without a user and a password, and those two apart.
    var withoutCredentials: (text: String, credentials: String?) {
        let text = self.absoluteString
        guard let user = self.user() else { return (text, nil) }
        let credentials = user + (self.password().map { ":\($0)" } ?? "")
        return (text.replacing("\(credentials)@", with: "", maxReplacements: 1), credentials)
    }
}
