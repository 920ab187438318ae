/// A body that arrives more slowly than this is given up.
///
/// What counts is the body as it is on the network. Time in which the reader keeps it waiting does not.
public struct MinimumSpeed: Sendable, Hashable {
    /// The bytes that must arrive each second.
    public var bytesPerSecond: Int
    /// The time over which the mean is taken, again and again from the first byte of the body on.
    public var period: Duration

    /// Creates a limit.
    public init(bytesPerSecond: Int, period: Duration = .seconds(10)) {
        self.bytesPerSecond = bytesPerSecond
        self.period = max(period, .milliseconds(1))
    }
}
