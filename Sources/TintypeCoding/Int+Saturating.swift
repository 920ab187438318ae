/// Sums and products of sizes that strangers choose: too large is `Int.max`, never a trap.
extension Int {
    /// The product of two numbers that are not negative.
    package func saturatingMultiplied(by other: Int) -> Int {
        let (product, overflow) = self.multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }

    /// The sum of two numbers that are not negative.
    package func saturatingAdded(to other: Int) -> Int {
        let (sum, overflow) = self.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
