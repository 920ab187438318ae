// SPDX-License-Identifier: Apache-2.0

public import TintypeCaching
import TintypeConcurrency
public import TintypeDownloading
import TintypeRequests

/// The counters of a loader at one moment.
public struct LoaderStatistics: Sendable {
    /// The loads of one product, by how they ended.
    public struct Loads: Sendable, Hashable {
        /// The loads that have begun.
        public internal(set) var started = 0
        /// The callers and loads that joined one under way.
        public internal(set) var joined = 0
        /// The hits of loads in a tier, and of callers that found bytes ready on disk, by tier.
        ///
        /// The cache counts hits of callers in memory, as `MemoryStatistics.hits` and `encodedHits`.
        public internal(set) var hits: [LoadSource: Int] = [:]
        /// The loads that have finished, by the source of their product.
        public internal(set) var finished: [LoadSource: Int] = [:]
        /// The loads that failed, by the name of the error's code.
        public internal(set) var failed: [String: Int] = [:]
        /// The loads that the network policy refused.
        public internal(set) var refused = 0
        /// The loads whose last caller has left.
        public internal(set) var cancelled = 0

        /// The loads under way.
        public var active: Int {
            let ended = self.finished.values.reduce(0, +) + self.failed.values.reduce(0, +)
            return self.started - ended - self.refused - self.cancelled
        }
    }

    /// The loads of images.
    public internal(set) var images = Loads()
    /// The loads of encoded bytes, including those for images.
    public internal(set) var bytes = Loads()
    /// The loads of encoded images.
    public internal(set) var encoded = Loads()
    /// The loads that a remembered failure (``FailureLifetimes``) answered instead of the origin.
    ///
    /// They count as failed,
    /// too, unless a stale response may answer.
    public internal(set) var rememberedFailures = 0
    /// The thumbnails that were made of the decoded original in memory.
    ///
    /// Each counts as a hit in memory, too.
    public internal(set) var thumbnailsOfOriginals = 0
    /// The images that were decoded from their bytes.
    public internal(set) var decodes = 0
    /// The durations of loads of images that were not in memory.
    public internal(set) var imageDuration = LatencyHistogram()
    /// The durations of loads of bytes.
    public internal(set) var bytesDuration = LatencyHistogram()
    /// The durations of loads of encoded images that were not in memory.
    public internal(set) var encodedDuration = LatencyHistogram()
    /// The waits of transfers before they began.
    public internal(set) var queue = LatencyHistogram()
    /// The times until the first byte of an origin.
    public internal(set) var firstByte = LatencyHistogram()
    /// The durations of transfers.
    public internal(set) var transfer = LatencyHistogram()
    /// The durations of look-ups on disk.
    public internal(set) var disk = LatencyHistogram()
    /// The waits of decodes for memory.
    public internal(set) var gate = LatencyHistogram()
    /// The waits of decodes for lanes.
    public internal(set) var lane = LatencyHistogram()
    /// The durations of decodes.
    public internal(set) var decode = LatencyHistogram()
    /// The durations of resizes.
    public internal(set) var transform = LatencyHistogram()
    /// The durations of encodes.
    public internal(set) var encode = LatencyHistogram()
    /// The counters of the cache.
    public internal(set) var cache = CacheStatistics()
    /// The counters of the downloads.
    public internal(set) var downloads = DownloadCounters()

    /// The loads of one product.
    public internal(set) subscript(product: LoadActivity.Product) -> Loads {
        get {
            switch product {
            case .image: self.images
            case .bytes: self.bytes
            case .encoded: self.encoded
            }
        }
        // In place, so that no dictionary is copied.
        _modify {
            switch product {
            case .image: yield &self.images
            case .bytes: yield &self.bytes
            case .encoded: yield &self.encoded
            }
        }
    }
}

/// The number of durations in buckets of length.
public struct LatencyHistogram: Sendable, Hashable {
    /// The upper bounds of the buckets in seconds, inclusive.
    ///
    /// One more bucket has longer durations.
    public static let bounds = [
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]

    /// The number of durations in each bucket alone; the last bucket has those above all bounds.
    public private(set) var counts = [UInt64](repeating: 0, count: Self.bounds.count + 1)
    /// The number of durations.
    public private(set) var count: UInt64 = 0
    /// The sum of the durations in seconds.
    public private(set) var sum: Double = 0

    /// Makes an empty histogram.
    ///
    /// ```swift
    /// let histogram = LatencyHistogram()
    /// print(histogram.upperBound(ofQuantile: 0.5) == nil)  // true
    /// ```
    public init() {}

    /// Counts a duration.
    package mutating func add(_ duration: Duration) {
        let seconds = duration / .seconds(1)
        self.counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
        self.count += 1
        self.sum += seconds
    }

    /// Returns the upper bound, in seconds, of the bucket with the `quantile` (0 to 1) of the durations.
    ///
    /// ```swift
    /// let seconds = await loader.statistics().imageDuration.upperBound(ofQuantile: 0.99)
    /// ```
    ///
    /// - Returns: The bound; `nil` for an empty histogram, infinity for the last bucket.
    public func upperBound(ofQuantile quantile: Double) -> Double? {
        guard self.count > 0 else { return nil }
        let wanted = Double(self.count) * min(max(quantile, 0), 1)
        var sum: UInt64 = 0
        for (bound, count) in zip(Self.bounds, self.counts) {
            sum += count
            if Double(sum) >= wanted { return bound }
        }
        return .infinity
    }
}

/// The counters behind ``LoaderStatistics``.
final class LoadCounters: Sendable {
    private let state = Locked(LoaderStatistics())

    var statistics: LoaderStatistics { self.state.withLock { $0 } }

    func count(_ kind: LoadActivity.Kind, _ product: LoadActivity.Product) {
        self.state.withLock { state in
            switch kind {
            case .started: state[product].started += 1
            case .joined: state[product].joined += 1
            case .hit(let source, _): state[product].hits[source, default: 0] += 1
            case .downloadStarted, .downloadFinished, .stored: break
            case .decoded: state.decodes += 1
            case .finished(let source, let metrics):
                state[product].finished[source, default: 0] += 1
                state.add(metrics, product)
            // A fetcher of the program may use any number of codes.
            case .failed(let error):
                let isKnown = state[product].failed[error.code.description] != nil || state[product].failed.count < 100
                state[product].failed[isKnown ? error.code.description : "other", default: 0] += 1
            case .refused: state[product].refused += 1
            case .cancelled: state[product].cancelled += 1
            }
        }
    }

    @inline(never)
    func count(_ counter: WritableKeyPath<LoaderStatistics, Int>) {
        self.state.withLock { $0[keyPath: counter] += 1 }
    }
}

extension LoaderStatistics {
    /// Adds the durations of a load to the histograms.
    fileprivate mutating func add(_ metrics: LoadMetrics, _ product: LoadActivity.Product) {
        func add(_ duration: Duration, _ path: WritableKeyPath<LoaderStatistics, LatencyHistogram>) {
            if duration > .zero { self[keyPath: path].add(duration) }
        }
        switch product {
        case .image:
            self.imageDuration.add(metrics.total)
            add(metrics.gate, \.gate)
            add(metrics.lane, \.lane)
            add(metrics.decode, \.decode)
            add(metrics.transform, \.transform)
        case .encoded:
            self.encodedDuration.add(metrics.total)
            add(metrics.encode, \.encode)
        // The load of the bytes has counted its parts already.
        case .bytes:
            self.bytesDuration.add(metrics.total)
            add(metrics.disk, \.disk)
            guard let transfer = metrics.transfer else { return }
            self.queue.add(metrics.queue)
            add(transfer.firstByte, \.firstByte)
            add(transfer.total, \.transfer)
        }
    }
}
