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
