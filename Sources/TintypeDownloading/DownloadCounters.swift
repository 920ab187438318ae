// SPDX-License-Identifier: Apache-2.0

/// The counters of a downloader.
public struct DownloadCounters: Sendable, Hashable {
    /// The requested transfers; callers that share one count once.
    public internal(set) var started = 0
    /// The callers that joined a transfer in flight.
    public internal(set) var shared = 0
    /// The number of final response heads, also of redirects and failed tries.
    public internal(set) var receivedHeads = 0
    /// The transfers that have succeeded.
    public internal(set) var succeeded = 0
    /// The transfers that ended with an error.
    public internal(set) var failed = 0
    /// The refusals by the network policy: requests, and transfers at a redirect, a hook's URL or an address.
    ///
    /// Refused transfers count as failed, too.
    public internal(set) var refused = 0
    /// The transfers whose last caller has left.
    public internal(set) var cancelled = 0
    /// The tries after the first ones.
    public internal(set) var retried = 0
    /// The transfers that have resumed the body of an earlier try or process.
    public internal(set) var resumed = 0
    /// The transfers that are in progress now.
    public internal(set) var active = 0
    /// The transfers that wait for their turn, for another try or for a hook now.
    public internal(set) var waiting = 0
    /// The bytes of body that were received, before any `Content-Encoding` was undone.
    public internal(set) var receivedBytes: Int64 = 0
    /// The changes of priority of transfers.
    public internal(set) var reprioritized = 0
    /// The waits of transfers for memory.
    public internal(set) var memoryWaits = 0
    /// The bytes of bodies in memory now, including the memory of their decompression, and bodies that a loader has not
    /// decoded yet.
    public internal(set) var bodyBytes = 0
    /// The most bytes of bodies in memory at once.
    public internal(set) var peakBodyBytes = 0

    /// Creates counters that are zero.
    ///
    /// ```swift
    /// let counters = DownloadCounters()
    /// ```
    public init() {}
}
