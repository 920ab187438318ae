// SPDX-License-Identifier: Apache-2.0

/// Texts of clients in messages.
enum Quotation {
    /// Returns the start of `text` between quotation marks.
    static func of(_ text: String) -> String {
        // A character can have any number of scalars.
        let start = String(text.unicodeScalars.prefix(80))
        return "\"\(start)\(start.utf8.count == text.utf8.count ? "" : "...")\""
    }
}
