extension String {
    /// The text with blanks behind it, up to `width` characters.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - self.count))
    }

    /// The text cut in its middle, where its parts differ least, to at most `width` characters.
    func shortened(to width: Int) -> String {
        guard self.count > width, width > 3 else { return String(self.prefix(max(0, width))) }
        let head = (width - 3) / 3
        return "\(self.prefix(head))...\(self.suffix(width - 3 - head))"
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
        let whole = Int(seconds.rounded(.up))
        if whole < 60 { return "\(whole) s" }
        let rest = whole % 60
        return "\(whole / 60):\(rest < 10 ? "0" : "")\(rest) min"
    }
}
