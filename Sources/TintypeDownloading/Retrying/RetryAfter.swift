import FoundationEssentials

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
enum RetryAfter {
    /// How long to wait from `date` on, or `nil` where the value is neither.
    static func delay(_ value: String, date: Date) -> Duration? {
        if !value.isEmpty, value.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) {
            // More digits than a number holds are a long time all the same.
            return .seconds(min(Int64(value) ?? .max, 1 << 40))
        }
        guard let time = HTTPDate.parse(value) else { return nil }
        return .seconds(max(0, min(time.timeIntervalSince(date), 1e12)))
    }
}
