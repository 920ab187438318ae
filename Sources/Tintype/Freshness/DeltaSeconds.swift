/// A number of seconds as HTTP writes it: digits only (RFC 9111, 1.2.2).
enum DeltaSeconds {
    /// What stands for any larger number, here as in the RFC.
    static let maximum = 2_147_483_648.0

    /// The number, or `nil` when `text` is anything but digits.
    static func parse(_ text: String) -> Double? {
        let digits = text.utf8
        guard !digits.isEmpty, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
        // No more digits than the largest number has are ever computed with.
        let significant = digits.drop { $0 == UInt8(ascii: "0") }
        guard significant.count <= 10 else { return self.maximum }
        return min(self.maximum, significant.reduce(0) { $0 * 10 + Double($1 - UInt8(ascii: "0")) })
    }
}
