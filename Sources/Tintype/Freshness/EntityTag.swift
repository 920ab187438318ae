/// The validator in an `ETag` field (RFC 9110, 8.8.3).
struct EntityTag: Sendable, Hashable {
    /// Whether the tag stands for bytes that are the same one by one.
    let isStrong: Bool
    /// What is between the quotes, or the whole of a tag that has none.
    let value: String

    /// Reads a tag; servers also send it without quotes, which is taken as it is.
    init(_ text: String) {
        if text.hasPrefix("W/\"") {
            self.isStrong = false
            self.value = Self.unquoted(text.dropFirst(2))
        } else {
            self.isStrong = text.hasPrefix("\"")
            self.value = Self.unquoted(text[...])
        }
    }

    /// Whether both are strong and the same (RFC 9110, 8.8.3.2).
    func matchesStrongly(_ other: EntityTag) -> Bool {
        self.isStrong && other.isStrong && self.value == other.value
    }

    /// Whether they are the same, weak or not.
    func matchesWeakly(_ other: EntityTag) -> Bool {
        self.value == other.value
    }

    private static func unquoted(_ text: Substring) -> String {
        guard text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return String(text) }
        return String(text.dropFirst().dropLast())
    }
}
