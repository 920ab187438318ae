// SPDX-License-Identifier: Apache-2.0

/// The items that a fleet caches: sources, and results of them in several sizes.
///
/// An item is a number. The sources are the items from 0, and the results follow.
struct Catalogue: Sendable {
    let sourceCount: Int
    /// The source of each result, in the order of the results.
    let sources: [Int]
    /// The bytes of each item.
    let bytes: [Int]

    init(sourceCount: Int, sources: [Int], bytes: [Int]) {
        precondition(bytes.count == sourceCount + sources.count)
        self.sourceCount = sourceCount
        self.sources = sources
        self.bytes = bytes
    }

    /// Creates a catalogue with `sizes` results of each source, and random bytes for each item.
    init(sourceCount: Int, sizes: Int, sourceBytes: LogNormal, resultBytes: LogNormal, seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let sources = (0..<sourceCount * sizes).map { $0 / sizes }
        self.init(sourceCount: sourceCount, sources: sources, sourceBytes, resultBytes, &generator)
    }

    /// Creates a catalogue of given results with random bytes for each item.
    init(
        sourceCount: Int,
        sources: [Int],
        _ sourceBytes: LogNormal,
        _ resultBytes: LogNormal,
        _ generator: inout SeededGenerator
    ) {
        let bytes =
            (0..<sourceCount).map { _ in max(1, Int(sourceBytes.value(&generator))) }
            + sources.map { _ in max(1, Int(resultBytes.value(&generator))) }
        self.init(sourceCount: sourceCount, sources: sources, bytes: bytes)
    }

    var itemCount: Int { self.bytes.count }

    func isSource(_ item: Int) -> Bool { item < self.sourceCount }

    func source(of result: Int) -> Int { self.sources[result - self.sourceCount] }
}
