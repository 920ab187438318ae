import FoundationEssentials

/// Dates as HTTP writes them (RFC 9110, 5.6.7).
///
/// All three forms are read, with the case of names disregarded; only the first is written.
enum HTTPDate {
    private static let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    private static let longDays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// The date that `text` stands for, or `nil` when it is in none of the three forms.
    ///
    /// `now` tells the century of a year with two digits.
    static func parse(_ text: String, now: Date) -> Date? {
        // The longest form has 33 characters, and what an origin sends may have any number.
        guard text.utf8.count <= 64 else { return nil }
        let text = text.lowercased()
        return self.parseFixed(DateScanner(text)) ?? self.parseRFC850(DateScanner(text), now: now)
            ?? self.parseASCTime(DateScanner(text))
    }

    /// `date` in the preferred form, to the second.
    static func text(of date: Date) -> String {
        let seconds = Int(date.timeIntervalSince1970.rounded(.down))
        let day = Int((Double(seconds) / 86_400).rounded(.down))
        let (year, month, dayOfMonth) = CivilDate.of(day: day)
        let weekday = ((day + 4) % 7 + 7) % 7
        let rest = seconds - day * 86_400
        func capitalized(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }
        func digits(_ value: Int, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return "\(capitalized(self.days[weekday])), \(digits(dayOfMonth, 2)) \(capitalized(self.months[month - 1])) "
            + "\(digits(year, 4)) \(digits(rest / 3_600, 2)):\(digits(rest / 60 % 60, 2)):\(digits(rest % 60, 2)) GMT"
    }

    /// Reads `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func parseFixed(_ scanner: DateScanner) -> Date? {
        var scanner = scanner
        guard scanner.readName(of: self.days) != nil, scanner.read(", "), let day = scanner.readNumber(2),
            scanner.read(" "), let month = scanner.readName(of: self.months), scanner.read(" "),
            let year = scanner.readNumber(4), scanner.read(" "), let time = scanner.readTime(),
            scanner.read(" gmt"), scanner.isAtEnd
        else { return nil }
        return self.date(year: year, month: month + 1, day: day, time: time)
    }

    /// Reads `Sunday, 06-Nov-94 08:49:37 GMT`.
    private static func parseRFC850(_ scanner: DateScanner, now: Date) -> Date? {
        var scanner = scanner
        guard scanner.readName(of: self.longDays) != nil, scanner.read(", "), let day = scanner.readNumber(2),
            scanner.read("-"), let month = scanner.readName(of: self.months), scanner.read("-"),
            let shortYear = scanner.readNumber(2), scanner.read(" "), let time = scanner.readTime(),
            scanner.read(" gmt"), scanner.isAtEnd
        else { return nil }
        let today = Int((now.timeIntervalSince1970 / 86_400).rounded(.down))
        let thisYear = CivilDate.of(day: today).year
        let year = thisYear / 100 * 100 + shortYear
        guard let date = self.date(year: year, month: month + 1, day: day, time: time) else { return nil }
        // What seems more than 50 years ahead is the last past year with these digits.
        let isTooFar = year - thisYear > 50 || year - thisYear == 50 && date.timeIntervalSince(now) > 50 * 31_556_952
        return isTooFar ? self.date(year: year - 100, month: month + 1, day: day, time: time) : date
    }

    /// Reads `Sun Nov  6 08:49:37 1994`.
    private static func parseASCTime(_ scanner: DateScanner) -> Date? {
        var scanner = scanner
        guard scanner.readName(of: self.days) != nil, scanner.read(" "),
            let month = scanner.readName(of: self.months), scanner.read(" "),
            let day = scanner.read(" ") ? scanner.readNumber(1) : scanner.readNumber(2), scanner.read(" "),
            let time = scanner.readTime(), scanner.read(" "), let year = scanner.readNumber(4), scanner.isAtEnd
        else { return nil }
        return self.date(year: year, month: month + 1, day: day, time: time)
    }

    private static func date(year: Int, month: Int, day: Int, time: Int) -> Date? {
        guard let dayNumber = CivilDate.day(year: year, month: month, day: day) else { return nil }
        return Date(timeIntervalSince1970: Double(dayNumber * 86_400 + time))
    }
}
