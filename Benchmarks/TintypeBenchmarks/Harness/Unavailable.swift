/// A row or a side can't be measured here; the reason goes into the table.
struct Unavailable: Error, CustomStringConvertible {
    /// Why, in words for the reader of the table.
    let description: String

    init(_ reason: String) {
        self.description = reason
    }
}
