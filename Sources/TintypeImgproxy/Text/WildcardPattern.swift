// SPDX-License-Identifier: Apache-2.0

/// A pattern for the start of a text, in which `*` stands for any characters except slashes.
struct WildcardPattern: Sendable, Hashable {
    /// The texts between the wildcards.
    private let parts: [[UInt8]]

    init(_ pattern: some Collection<UInt8>) {
        self.parts = pattern.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map { Array($0) }
    }

    /// The start of a text that matches a pattern.
    struct Match: Hashable {
        /// The end of the match.
        var end: Int
        /// The characters that each wildcard stands for.
        var captures: [Range<Int>]
    }

    /// Returns the match at the start of `text`, or `nil` if there is no match.
    ///
    /// The first wildcard takes as many characters as possible, then the second, and so on. The time is proportional to
    /// the product of the two lengths.
    func match(_ text: [UInt8]) -> Match? {
        guard self.parts.count > 1 else {
            return text.starts(with: self.parts[0]) ? Match(end: self.parts[0].count, captures: []) : nil
        }
        // For each part after a wildcard and each position before the wildcard: the last start of the part from which
        // the rest matches.
        var starts: [[Int?]] = []
        for part in self.parts.dropFirst().reversed() {
            let next = starts.last
            var row = [Int?](repeating: nil, count: text.count + 1)
            var last: Int?
            for position in stride(from: text.count, through: 0, by: -1) {
                if position < text.count, text[position] == UInt8(ascii: "/") { last = nil }
                if last == nil, text[position...].starts(with: part) {
                    let end = position + part.count
                    let continues = next.map { $0[end] != nil } ?? true
                    if continues { last = position }
                }
                row[position] = last
            }
            starts.append(row)
        }
        guard text.starts(with: self.parts[0]) else { return nil }
        var end = self.parts[0].count
        var captures: [Range<Int>] = []
        for (row, part) in zip(starts.reversed(), self.parts.dropFirst()) {
            guard let start = row[end] else { return nil }
            captures.append(end..<start)
            end = start + part.count
        }
        return Match(end: end, captures: captures)
    }
}
