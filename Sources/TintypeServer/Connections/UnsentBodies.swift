// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The bodies in memory that clients did not take at once.
///
/// A body that many connections send counts once, because it is in memory once.
struct UnsentBodies {
    /// The total length of the bodies.
    private(set) var byteCount = 0
    /// The number of connections that send each body.
    private var counts: [BodyIdentity: Int] = [:]

    /// Counts one more sender of `body`.
    mutating func insert(_ body: BodyIdentity) {
        if self.counts.updateValue(self.counts[body, default: 0] + 1, forKey: body) == nil {
            self.byteCount += body.count
        }
    }

    /// Counts one sender fewer of `body`.
    mutating func remove(_ body: BodyIdentity) {
        guard let count = self.counts[body] else { return }
        self.counts[body] = count > 1 ? count - 1 : nil
        if count == 1 { self.byteCount -= body.count }
    }
}

/// The identity of a body in memory, valid while something holds its bytes.
struct BodyIdentity: Hashable {
    private let address: UInt
    let count: Int

    init(_ data: Data) {
        self.address = data.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
        self.count = data.count
    }
}
