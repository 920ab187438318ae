/// A set of HTTP status codes, written as ranges.
///
/// ```swift
/// let codes = StatusCodes.success.union(304)
/// ```
public struct StatusCodes: Sendable, Hashable, ExpressibleByArrayLiteral {
    private var ranges: [Range<Int>]

    /// The codes from 200 to 299.
    public static let success = StatusCodes(200..<300)

    /// Creates the set of all codes in `range`.
    public init(_ range: Range<Int>) {
        self.ranges = [range]
    }

    /// Creates the set of these codes.
    public init(arrayLiteral codes: Int...) {
        self.ranges = codes.map { $0..<($0 + 1) }
    }

    /// Whether `code` is one of the set.
    public func contains(_ code: Int) -> Bool {
        self.ranges.contains { $0.contains(code) }
    }

    /// The set with one more code.
    public func union(_ code: Int) -> StatusCodes {
        self.union(StatusCodes(code..<(code + 1)))
    }

    /// The codes of both sets.
    public func union(_ other: StatusCodes) -> StatusCodes {
        var copy = self
        copy.ranges += other.ranges.filter { !self.ranges.contains($0) }
        return copy
    }
}
