// SPDX-License-Identifier: Apache-2.0

/// A generator of random numbers that are the same in every run (SplitMix64).
public struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    /// Starts the sequence of `seed`.
    public init(seed: UInt64) {
        self.state = seed
    }

    public mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var word = self.state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
