// SPDX-License-Identifier: Apache-2.0

/// One side of a comparison, ready to be measured.
struct Contestant: Sendable {
    /// Remarks on its configuration, for the reader of the figures.
    let note: String?
    /// The smallest number of operations in a sample.
    let smallestCount: Int
    /// The largest number of operations in a sample.
    let largestCount: Int
    /// Runs the operation `count` times, and returns the cost.
    ///
    /// Throws if the result is wrong, such as its size or its status.
    let run: @Sendable (_ count: Int) async throws -> Measurement

    /// Creates a side whose sample has between `counts` operations.
    init(
        counts: ClosedRange<Int> = 1...100_000_000,
        note: String? = nil,
        run: @escaping @Sendable (_ count: Int) async throws -> Measurement
    ) {
        self.smallestCount = counts.lowerBound
        self.largestCount = counts.upperBound
        self.note = note
        self.run = run
    }
}
