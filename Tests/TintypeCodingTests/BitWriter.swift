// SPDX-License-Identifier: Apache-2.0

/// Writes numbers of some bits each, the lowest bit first.
struct BitWriter {
    private var whole: [UInt8] = []
    private var bits = 0
    private var bitCount = 0

    /// The bytes so far, of which the last one is filled with zeros.
    var bytes: [UInt8] { self.bitCount > 0 ? self.whole + [UInt8(self.bits & 255)] : self.whole }

    mutating func append(_ value: Int, _ count: Int) {
        self.bits |= value << self.bitCount
        self.bitCount += count
        while self.bitCount >= 8 {
            self.whole.append(UInt8(self.bits & 255))
            self.bits >>= 8
            self.bitCount -= 8
        }
    }
}
