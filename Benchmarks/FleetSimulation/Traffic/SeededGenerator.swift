// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A generator of random numbers that gives the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) {
        self.state = seed
    }

    mutating func next() -> UInt64 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mix(self.state)
    }

    /// A number from 0 up to, but not including, 1.
    mutating func unit() -> Double {
        Double(self.next() >> 11) * 0x1p-53
    }

    /// A number of the exponential distribution: the gap between two requests that arrive at random times.
    mutating func exponential(mean: Double) -> Double {
        -mean * log(1 - self.unit())
    }

    /// A number of the normal distribution with mean 0 and deviation 1.
    mutating func normal() -> Double {
        (-2 * log(1 - self.unit())).squareRoot() * cos(2 * .pi * self.unit())
    }

    /// Spreads the bits of a number evenly.
    static func mix(_ number: UInt64) -> UInt64 {
        var value = number
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }
}
