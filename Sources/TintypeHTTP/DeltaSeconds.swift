package import FoundationEssentials

/// A number of seconds as HTTP writes it: digits only (RFC 9111, 1.2.2).
enum DeltaSeconds {
    /// What stands for any larger number, here as in the RFC.
    static let maximum = 2_147_483_648.0

    /// The number, or `nil` when `text` is anything but digits.
    static func parse(_ text: String) -> Double? {
        guard FieldText.isNumber(text) else { return nil }
        // No more digits than the largest number has are ever computed with.
        let significant = text.utf8.drop { $0 == UInt8(ascii: "0") }
        guard significant.count <= 10 else { return self.maximum }
        return min(self.maximum, significant.reduce(0) { $0 * 10 + Double($1 - UInt8(ascii: "0")) })
    }
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
package enum RetryAfter {
    /// How long to wait from `date` on, or `nil` where the value is neither.
    package static func delay(_ value: String, date: Date) -> Duration? {
        if let seconds = DeltaSeconds.parse(value) { return .seconds(seconds) }
        guard let time = HTTPDate.parse(value, now: date) else { return nil }
        return .seconds(max(0, min(time.timeIntervalSince(date), 1e12)))
    }
}
