// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Dates as HTTP writes them (RFC 9110, 5.6.7).
///
/// Reads all three forms, as recipients must, with names in any case. Each field has its own rule for an invalid date.
/// Writes only the first form.
package enum HTTPDate {
    private static let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    private static let longDays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    /// The date that `text` stands for, or `nil` when it is in none of the three forms.
    ///
    /// `now` tells the century of a year with two digits.
    package static func parse(_ text: String, now: Date) -> Date? {
        // The longest form has 33 characters, and what an origin sends may have any number.
        guard text.utf8.count <= 64 else { return nil }
        let text = text.lowercased()
        return self.parseFixed(DateScanner(text)) ?? self.parseRFC850(DateScanner(text), now: now)
            ?? self.parseASCTime(DateScanner(text))
    }

    /// `date` in the preferred form, to the second.
    package static func text(of date: Date) -> String {
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
        let seconds = Int(now.timeIntervalSince1970.rounded(.down))
        let today = Int((Double(seconds) / 86_400).rounded(.down))
        let (thisYear, thisMonth, thisDay) = CivilDate.of(day: today)
        let year = thisYear / 100 * 100 + shortYear
        // A date that seems more than 50 years ahead is in the last past year with these digits.
        let isTooFar =
            (year - 50, month + 1, day, time) > (thisYear, thisMonth, thisDay, seconds - today * 86_400)
        return self.date(year: isTooFar ? year - 100 : year, month: month + 1, day: day, time: time)
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

/// Reads the parts of a date from the front of a lower-case text.
private struct DateScanner {
    private var rest: Substring.UTF8View

    init(_ text: String) {
        self.rest = text[...].utf8
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    /// Takes `expected` off the front, if it is there.
    mutating func read(_ expected: String) -> Bool {
        guard self.rest.starts(with: expected.utf8) else { return false }
        self.rest = self.rest.dropFirst(expected.utf8.count)
        return true
    }

    /// Takes one of `names` off the front; its index.
    mutating func readName(of names: [String]) -> Int? {
        names.firstIndex { self.read($0) }
    }

    /// Takes exactly `count` digits off the front.
    mutating func readNumber(_ count: Int) -> Int? {
        let digits = self.rest.prefix(count)
        guard digits.count == count, FieldText.isNumber(Substring(digits)) else { return nil }
        self.rest = self.rest.dropFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    /// Takes `08:49:37` off the front; the seconds since midnight.
    mutating func readTime() -> Int? {
        guard let hour = self.readNumber(2), self.read(":"), let minute = self.readNumber(2), self.read(":"),
            let second = self.readNumber(2), hour < 24, minute < 60, second <= 60
        else { return nil }
        return hour * 3_600 + minute * 60 + second
    }
}

/// Days of the Gregorian calendar, counted from 1970.
private enum CivilDate {
    /// The number of a day, or `nil` when there is no such day.
    static func day(year: Int, month: Int, day: Int) -> Int? {
        guard 1...12 ~= month, 1...self.length(of: month, in: year) ~= day else { return nil }
        // Years from March on end with the leap day.
        let year = month > 2 ? year : year - 1
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// The date of the day with this number.
    static func of(day: Int) -> (year: Int, month: Int, day: Int) {
        let day = day + 719_468
        let era = (day >= 0 ? day : day - 146_096) / 146_097
        let dayOfEra = day - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let isAfterFebruary = month < 10
        return (
            yearOfEra + era * 400 + (isAfterFebruary ? 0 : 1),
            isAfterFebruary ? month + 3 : month - 9,
            dayOfYear - (153 * month + 2) / 5 + 1
        )
    }

    private static func length(of month: Int, in year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

/// A number of seconds as HTTP writes it: digits only (RFC 9111, 1.2.2).
enum DeltaSeconds {
    /// Stands for any larger number, as in the RFC.
    static let maximum = 2_147_483_648.0

    /// The number, or `nil` when `text` is anything but digits.
    static func parse(_ text: String) -> Double? {
        guard FieldText.isNumber(text) else { return nil }
        // No more digits than the largest number has are ever computed with.
        let significant = text.utf8.drop { $0 == UInt8(ascii: "0") }
        guard significant.count <= 10 else { return self.maximum }
        return min(self.maximum, significant.reduce(0) { $0 * 10 + Double($1 - UInt8(ascii: "0")) })
    }
}

/// Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
package enum RetryAfter {
    /// Returns the time to wait from `date` on; `nil` if the value is neither a date nor a number.
    package static func delay(_ value: String, date: Date) -> Duration? {
        if let seconds = DeltaSeconds.parse(value) { return .seconds(seconds) }
        guard let time = HTTPDate.parse(value, now: date) else { return nil }
        return .seconds(max(0, min(time.timeIntervalSince(date), 1e12)))
    }
}
