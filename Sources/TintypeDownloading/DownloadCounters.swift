/// What a downloader has done so far.
public struct DownloadCounters: Sendable, Hashable {
    /// The transfers that were asked for; callers that shared one count once.
    public internal(set) var started = 0
    /// The callers that joined a transfer in flight.
    public internal(set) var shared = 0
    /// The heads of final responses that came, those of redirects and failed tries included.
    public internal(set) var receivedHeads = 0
    /// The transfers that gave a body.
    public internal(set) var succeeded = 0
    /// The transfers that ended with an error.
    public internal(set) var failed = 0
    /// What the network policy refused: requests before they became transfers, and transfers at a redirect, a hook's URL
    /// or an address.
    ///
    /// The transfers count as failed, too.
    public internal(set) var refused = 0
    /// The transfers that ended because no caller waited any more.
    public internal(set) var cancelled = 0
    /// The tries after the first ones.
    public internal(set) var retried = 0
    /// The transfers that went on where an earlier try or process had broken off.
    public internal(set) var resumed = 0
    /// The transfers that are in progress now.
    public internal(set) var active = 0
    /// The transfers that wait for their turn, for another try or for a hook now.
    public internal(set) var waiting = 0
    /// The bytes of body that were received, before any `Content-Encoding` was undone.
    public internal(set) var receivedBytes: Int64 = 0
    /// How often a transfer became more or less urgent after it was asked for.
    public internal(set) var reprioritized = 0
    /// How often a transfer had to wait for memory.
    public internal(set) var memoryWaits = 0
    /// The bytes of bodies that are in memory now, with those that undoing their `Content-Encoding` takes, and those
    /// that a loader has not decoded yet.
    public internal(set) var bodyBytes = 0
    /// The most bytes of bodies that were in memory at once.
    public internal(set) var peakBodyBytes = 0

    /// Creates counters of a downloader that has done nothing.
    public init() {}
}
