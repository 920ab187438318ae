/// The fields of a request that say what is wanted, and never identify the user.
///
/// Only they may go to another origin, and only they may differ where one stored response answers two requests
/// without a `Vary` that names them. A list of those that identify a user would miss the next `X-User`.
package enum WishFields {
    private static let names: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "dnt", "if-modified-since",
        "if-none-match", "pragma", "range", "save-data", "sec-gpc", "user-agent",
    ]

    /// Whether a field, its name in lower case, is one of them.
    package static func contains(_ name: String) -> Bool {
        self.names.contains(name)
    }
}
