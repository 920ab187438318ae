/// Reads the parts of a date from the front of a lower-case text.
struct DateScanner {
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
        guard digits.count == count, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
            return nil
        }
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
