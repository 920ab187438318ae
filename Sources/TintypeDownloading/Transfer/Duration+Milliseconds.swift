extension Duration {
    /// The duration in milliseconds, rounded up, within what a C `int` holds.
    var wholeMilliseconds: Int {
        let (seconds, attoseconds) = self.components
        let limit = Int64(Int32.max)
        guard seconds < limit / 1_000 else { return Int(limit) }
        return Int(max(0, seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}
