/// How much of a body has been received.
public struct TransferProgress: Sendable, Hashable {
    /// The bytes of the body so far.
    public let receivedBytes: Int64
    /// The bytes that the body will have, or `nil` where the server does not say.
    ///
    /// It is also `nil` for a body that comes compressed: its declared length counts other bytes.
    public let expectedBytes: Int64?

    /// Creates a progress.
    public init(receivedBytes: Int64, expectedBytes: Int64?) {
        self.receivedBytes = receivedBytes
        self.expectedBytes = expectedBytes
    }

    /// The part that has been received, from 0 to 1, or `nil` where the length is unknown.
    public var fractionCompleted: Double? {
        guard let expectedBytes, expectedBytes > 0 else { return nil }
        return min(1, max(0, Double(self.receivedBytes) / Double(expectedBytes)))
    }
}
