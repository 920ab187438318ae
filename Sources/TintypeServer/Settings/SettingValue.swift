// SPDX-License-Identifier: Apache-2.0

/// The text of a setting, with the name by which it was set.
struct SettingValue: Sendable {
    /// The name for messages, such as `--quality`, `IMGPROXY_QUALITY` or `quality in line 3`.
    let spelling: String
    /// The text, without blanks at its ends; never empty.
    let text: String

    /// Creates a value, or `nil` if the text is empty: such a setting keeps its default.
    init?(_ text: String, spelling: String) {
        self.spelling = spelling
        self.text = text.trimmed
        guard !self.text.isEmpty else { return nil }
    }

    /// Returns the error for a value other than the allowed ones.
    func error(allowed: String) -> SettingError {
        SettingError("\(self.spelling) takes \(allowed), and not \(self.text).")
    }

    /// The parts of a comma-separated list.
    var list: [String] {
        self.text.split(separator: ",").map { $0.trimmed }.filter { !$0.isEmpty }
    }

    /// The truth value, in the spellings of imgproxy and most other programs; `nil` for other texts.
    var truth: Bool? {
        switch self.text.lowercased() {
        case "1", "t", "true", "y", "yes", "on": true
        case "0", "f", "false", "n", "no", "off": false
        default: nil
        }
    }

    /// Reads a whole number.
    func number(in range: ClosedRange<Int>) throws(SettingError) -> Int {
        guard let number = Int(self.text), range.contains(number) else {
            throw self.error(allowed: "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Reads a time: seconds, or a number with a unit.
    func time(allowsZero: Bool) throws(SettingError) -> Duration {
        let units: [Unit] = [("ms", 0.001), ("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        let tenYears = 315_360_000.0
        guard let seconds = self.amount(units: units), seconds <= tenYears, allowsZero || seconds >= 0.001 else {
            let zero = allowsZero ? "" : " over zero"
            throw self.error(allowed: "a time\(zero) in seconds, or with a unit such as 500ms, 10s, 5m, 2h or 7d")
        }
        return .milliseconds(Int((seconds * 1_000).rounded()))
    }

    /// Reads a number of bytes, with or without a unit.
    func byteCount() throws(SettingError) -> Int {
        let units: [Unit] = [
            ("kib", 1_024), ("mib", 1_048_576), ("gib", 1_073_741_824), ("kb", 1_000), ("mb", 1_000_000),
            ("gb", 1_000_000_000), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("b", 1),
        ]
        guard let count = self.amount(units: units), count <= Double(Self.maximumByteCount) else {
            throw self.error(allowed: "a number of bytes, or one with a unit such as 500MB or 2GiB")
        }
        return Int(count)
    }

    /// More bytes than any machine has, which stands for no limit.
    static let maximumByteCount = 1 << 50

    private typealias Unit = (suffix: String, factor: Double)

    /// Reads a number of at least 0 with an optional unit, and returns it in the base unit.
    ///
    /// The first unit that ends the text counts, so `ms` must come before `s`.
    private func amount(units: [Unit]) -> Double? {
        let text = self.text.lowercased()
        let unit = units.first { text.hasSuffix($0.suffix) }
        let digits = text.dropLast(unit?.suffix.count ?? 0).trimmed
        guard let number = Double(digits), number.isFinite, number >= 0 else { return nil }
        return number * (unit?.factor ?? 1)
    }
}

extension StringProtocol {
    /// The text without blanks at its ends.
    var trimmed: String {
        guard let first = self.firstIndex(where: { !$0.isWhitespace }),
            let last = self.lastIndex(where: { !$0.isWhitespace })
        else { return "" }
        return String(self[first...last])
    }

    /// Whether the text has characters that end a line of a header field, a log or a terminal.
    var hasControlCharacters: Bool {
        self.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
    }
}
