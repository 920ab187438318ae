// SPDX-License-Identifier: Apache-2.0

/// The replacement of the start of a source.
package struct SourceReplacement: Sendable, Hashable {
    private enum Piece: Sendable, Hashable {
        case text([UInt8])
        /// The characters that the wildcard with this index stands for.
        case capture(Int)
    }

    private let pattern: WildcardPattern
    private let pieces: [Piece]

    /// Creates a replacement for sources that start with `pattern`.
    ///
    /// A `*` in the pattern stands for any characters except slashes. `${1}` in `replacement` stands for the characters
    /// of the first `*`, and so on.
    package init(_ pattern: String, with replacement: String) {
        self.pattern = WildcardPattern(pattern.utf8)
        var pieces: [Piece] = []
        var rest = replacement.utf8[...]
        while let dollar = rest.firstIndex(of: UInt8(ascii: "$")) {
            pieces.append(.text(Array(rest[..<dollar])))
            let reference = rest[dollar...].dropFirst()
            if reference.first == UInt8(ascii: "{"), let end = reference.firstIndex(of: UInt8(ascii: "}")),
                let number = Int(String(reference[..<end].dropFirst()) ?? ""), number > 0
            {
                pieces.append(.capture(number - 1))
                rest = reference[end...].dropFirst()
            } else {
                pieces.append(.text([UInt8(ascii: "$")]))
                rest = reference
            }
        }
        pieces.append(.text(Array(rest)))
        self.pieces = pieces
    }

    /// Returns `source` with its start replaced; unchanged if it does not match.
    func apply(to source: [UInt8]) -> [UInt8] {
        guard let match = self.pattern.match(source) else { return source }
        var result: [UInt8] = []
        for piece in self.pieces {
            switch piece {
            case .text(let text): result += text
            case .capture(let index): if match.captures.indices ~= index { result += source[match.captures[index]] }
            }
        }
        return result + source[match.end...]
    }
}
