// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text with blanks behind it, up to `width` columns.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - self.columns))
    }

    /// The text cut in its middle, where addresses differ least, to at most `width` columns.
    func shortened(to width: Int) -> String {
        guard self.columns > width else { return self }
        guard width > 3 else { return String(repeating: ".", count: max(0, width)) }
        let head = (width - 3) / 3
        return Self.fitting(self, columns: head)
            + "..." + String(Self.fitting(self.reversed(), columns: width - 3 - head).reversed())
    }

    /// The text on one line, without control codes and marks of direction.
    ///
    /// Names, servers' words and profiles may hold what would move a terminal's cursor, or show what follows in
    /// another order than it has.
    var printable: String { self.replacingScalars(where: \.isDeceptive) }

    /// The text without control codes and marks of direction, on as many lines as it has.
    ///
    /// ``Output`` writes every line so, in case a caller forgot ``printable``.
    var harmless: String { self.replacingScalars { $0.isDeceptive && $0 != "\n" } }

    /// The text with a blank in place of some characters.
    private func replacingScalars(where isReplaced: (Unicode.Scalar) -> Bool) -> String {
        guard self.unicodeScalars.contains(where: isReplaced) else { return self }
        var result = String.UnicodeScalarView()
        for scalar in self.unicodeScalars { result.append(isReplaced(scalar) ? " " : scalar) }
        return String(result)
    }

    /// A name for messages: printable, and cut if it is long, as `data:` URLs are.
    var abbreviated: String { self.printable.shortened(to: 200) }

    /// The columns that a terminal needs for the text.
    var columns: Int {
        self.utf8.allSatisfy { $0 < 0x80 } ? self.utf8.count : self.reduce(0) { $0 + $1.columns }
    }

    private static func fitting(_ characters: some Sequence<Character>, columns: Int) -> String {
        var rest = columns
        return String(
            characters.prefix { character in
                rest -= character.columns
                return rest >= 0
            }
        )
    }
}

extension Unicode.Scalar {
    /// Whether it acts on a terminal, ends a line, or changes the direction of text (UAX 9).
    var isDeceptive: Bool {
        switch self.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: self.properties.isBidiControl
        }
    }

    /// East Asian wide and fullwidth blocks (UAX 11), as far as they matter.
    fileprivate var isWide: Bool {
        switch self.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
            true
        default: self.properties.isEmojiPresentation
        }
    }
}

extension Character {
    fileprivate var columns: Int {
        guard let first = self.unicodeScalars.first else { return 0 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: return first.isWide ? 2 : 1
        }
    }
}

/// Numbers as people read them.
enum Readable {
    /// Bytes, in steps of 1,000.
    static func bytes(_ count: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB"]
        var value = Double(count)
        var unit = 0
        while value >= 999.5, unit < units.count - 1 {
            value /= 1_000
            unit += 1
        }
        return unit == 0 || value >= 99.95
            ? "\(Int(value.rounded())) \(units[unit])" : "\(self.tenths(value)) \(units[unit])"
    }

    /// A number with one digit after the point.
    static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }

    /// A time to wait, such as `12 s` or `3:05 min`.
    static func seconds(_ seconds: Double) -> String {
        // A transfer that all but stands would take longer than anyone waits.
        guard seconds < 359_999 else { return "over 99 h" }
        let whole = Int(seconds.rounded(.up))
        if whole < 60 { return "\(whole) s" }
        if whole < 3_600 { return "\(whole / 60):\(self.twoDigits(whole % 60)) min" }
        return "\(whole / 3_600):\(self.twoDigits(whole / 60 % 60)) h"
    }

    /// A number of things, such as `1 entry` or `2 entries`.
    static func count(_ count: Int, _ one: String, _ many: String) -> String {
        "\(count) \(count == 1 ? one : many)"
    }

    private static func twoDigits(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }
}

/// Rows of text in aligned columns.
enum TextTable {
    /// One line for each row; two blanks stand between the columns.
    static func lines(_ rows: [[String]]) -> [String] {
        let count = rows.map(\.count).max() ?? 0
        let widths = (0..<count).map { column in
            rows.map { column < $0.count ? $0[column].columns : 0 }.max() ?? 0
        }
        return rows.map { row in
            row.enumerated().map { column, text in
                // Nothing stands behind the last one.
                column == row.count - 1 ? text : text.padded(to: widths[column])
            }.joined(separator: "  ")
        }
    }
}
