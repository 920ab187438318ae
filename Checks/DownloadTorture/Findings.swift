// SPDX-License-Identifier: Apache-2.0

/// The lines of a check's report, and whether each bar in them held.
struct Findings {
    private(set) var haveHeld = true

    /// Prints a line, and marks it if a bar was missed.
    mutating func line(_ text: String, _ holds: Bool = true) {
        print("\(text)\(holds ? "" : "   SHORT")")
        self.haveHeld = self.haveHeld && holds
    }
}
