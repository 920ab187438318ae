public import TintypeHTTP

/// What a transfer took.
///
/// Redirects and retries count in: each duration is the sum over the requests that were made. The time
/// in which a transfer waited for its turn does not.
public struct TransferMetrics: Sendable, Hashable {
    /// Finding the address of the host; zero on a connection that was open already.
    public internal(set) var nameLookup: Duration = .zero
    /// Opening the connection, without TLS; zero on a connection that was open already.
    public internal(set) var connect: Duration = .zero
    /// The TLS handshake; zero without TLS or on a connection that was open already.
    public internal(set) var tls: Duration = .zero
    /// From the start to the first byte of the response.
    public internal(set) var firstByte: Duration = .zero
    /// From the start to the last byte of the response.
    public internal(set) var total: Duration = .zero
    /// The bytes of body that were received, before any `Content-Encoding` was undone.
    public internal(set) var bytes: Int64 = 0
    /// Whether the last request went over a connection that was open already.
    public internal(set) var connectionReused = false
    /// The version of HTTP, or `nil` for `file:` and `data:` URLs.
    public internal(set) var httpVersion: ProtocolVersion?
    /// The number of redirects that were followed.
    public internal(set) var redirectCount = 0

    /// The tries after the first one.
    public internal(set) var retryCount = 0
    /// The bytes of the body that an earlier try or process had received, and that were not asked for again.
    public internal(set) var resumedBytes: Int64 = 0
    /// The address and port that the last request went to, such as `192.0.2.7:443`; a proxy's where one was used.
    public internal(set) var remoteAddress: String?

    init() {}
}
