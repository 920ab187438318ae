// SPDX-License-Identifier: Apache-2.0

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
    ///
    /// ```swift
    /// let codes = StatusCodes(200..<400)
    /// ```
    public init(_ range: Range<Int>) {
        self.ranges = [range]
    }

    /// Creates the set of these codes.
    public init(arrayLiteral codes: Int...) {
        self.ranges = codes.map { $0..<($0 + 1) }
    }

    /// Whether `code` is one of the set.
    ///
    /// ```swift
    /// let isAccepted = StatusCodes.success.contains(204)  // true
    /// ```
    public func contains(_ code: Int) -> Bool {
        self.ranges.contains { $0.contains(code) }
    }

    /// The set with one more code.
    ///
    /// ```swift
    /// let codes = StatusCodes.success.union(304)
    /// ```
    public func union(_ code: Int) -> StatusCodes {
        self.union(StatusCodes(code..<(code + 1)))
    }

    /// The codes of both sets.
    ///
    /// ```swift
    /// let codes = StatusCodes.success.union([304, 410])
    /// ```
    public func union(_ other: StatusCodes) -> StatusCodes {
        var copy = self
        copy.ranges += other.ranges.filter { !self.ranges.contains($0) }
        return copy
    }
}

/// The version of HTTP that a response came over.
public struct ProtocolVersion: Sendable, Hashable, CustomStringConvertible {
    /// The number before the dot.
    public let major: Int
    /// The number after the dot.
    public let minor: Int

    /// HTTP/1.0.
    public static let http1_0 = ProtocolVersion(major: 1, minor: 0)
    /// HTTP/1.1.
    public static let http1_1 = ProtocolVersion(major: 1, minor: 1)
    /// HTTP/2.
    public static let http2 = ProtocolVersion(major: 2, minor: 0)
    /// HTTP/3.
    public static let http3 = ProtocolVersion(major: 3, minor: 0)

    /// The version as status lines spell it, such as `HTTP/1.1` or `HTTP/2`.
    public var description: String {
        self.major >= 2 ? "HTTP/\(self.major)" : "HTTP/\(self.major).\(self.minor)"
    }
}
