public import TintypeCaching
import TintypeConcurrency
public import TintypeDownloading

/// What a loader has done so far, and what it holds, at one moment.
public struct LoaderStatistics: Sendable {
    /// What became of the loads of one product.
    public struct Loads: Sendable, Hashable {
        /// The loads that began.
        public internal(set) var started = 0
        /// The callers and loads that joined one under way.
        public internal(set) var joined = 0
        /// What loads found in a tier, and what callers found ready on disk, by where.
        ///
        /// What callers find in memory at once is no load: the cache counts it, as `MemoryStatistics.hits` and
        /// `encodedHits`.
        public internal(set) var hits: [LoadSource: Int] = [:]
        /// The loads that made their product, by where that came from.
        public internal(set) var finished: [LoadSource: Int] = [:]
        /// The loads that failed, by the name of the error's code.
        public internal(set) var failed: [String: Int] = [:]
        /// The loads that the network policy refused.
        public internal(set) var refused = 0
        /// The loads whose last caller left.
        public internal(set) var cancelled = 0

        /// The loads that run now.
        public var active: Int {
            let ended = self.finished.values.reduce(0, +) + self.failed.values.reduce(0, +)
            return self.started - ended - self.refused - self.cancelled
        }
    }

    /// The loads of images.
    public internal(set) var pictures = Loads()
    /// The loads of encoded bytes, those included that images are made of.
    public internal(set) var bytes = Loads()
    /// The loads of encoded images.
    public internal(set) var encoded = Loads()
    /// How often a failure that is remembered (``FailureLifetimes``) stood for the origin's answer; such loads count as
    /// failed, too, unless what is stale may stand in.
    public internal(set) var rememberedFailures = 0
    /// The thumbnails that were made of the decoded original in memory, each of which is a hit of the memory, too.
    public internal(set) var thumbnailsOfOriginals = 0
    /// The images that were made of their bytes.
    public internal(set) var decodes = 0
    /// How long loads of images took that found none in memory, from beginning to end.
    public internal(set) var pictureDuration = LatencyHistogram()
    /// How long loads of bytes took.
    public internal(set) var bytesDuration = LatencyHistogram()
    /// How long loads of encoded images took that found none in memory.
    public internal(set) var encodedDuration = LatencyHistogram()
    /// How long transfers waited before they began.
    public internal(set) var queue = LatencyHistogram()
    /// How long origins took to the first byte.
    public internal(set) var firstByte = LatencyHistogram()
    /// How long transfers took.
    public internal(set) var transfer = LatencyHistogram()
    /// How long loads looked on disk.
    public internal(set) var disk = LatencyHistogram()
    /// How long decodes waited for memory.
    public internal(set) var gate = LatencyHistogram()
    /// How long decodes waited for lanes.
    public internal(set) var lane = LatencyHistogram()
    /// How long decodes took.
    public internal(set) var decode = LatencyHistogram()
    /// How long resizes took.
    public internal(set) var transform = LatencyHistogram()
    /// How long it took to encode images.
    public internal(set) var encode = LatencyHistogram()
    /// What the cache holds, and how it was used.
    public internal(set) var cache = CacheStatistics()
    /// What the downloader has done.
    public internal(set) var downloads = DownloadCounters()

    /// The loads of one product.
    public internal(set) subscript(product: LoadActivity.Product) -> Loads {
        get {
            switch product {
            case .picture: self.pictures
            case .bytes: self.bytes
            case .encoded: self.encoded
            }
        }
        // In place, so that no dictionary is copied.
        _modify {
            switch product {
            case .picture: yield &self.pictures
            case .bytes: yield &self.bytes
            case .encoded: yield &self.encoded
            }
        }
    }
}

/// How many durations there were of each length.
public struct LatencyHistogram: Sendable, Hashable {
    /// The upper bounds of the buckets in seconds, each included; one bucket more has what is longer.
    public static let bounds = [
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]

    /// The durations in each bucket, not those in the buckets before; the last one has what is above all bounds.
    public private(set) var counts = [UInt64](repeating: 0, count: Self.bounds.count + 1)
    /// The number of durations.
    public private(set) var count: UInt64 = 0
    /// The sum of the durations in seconds.
    public private(set) var sum: Double = 0

    /// Makes an empty histogram.
    public init() {}

    mutating func add(_ duration: Duration) {
        let seconds = duration / .seconds(1)
        self.counts[Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count] += 1
        self.count += 1
        self.sum += seconds
    }

    /// The bound below which the part `quantile` (0 to 1) of the durations lies, in seconds: no more exact than the
    /// buckets are.
    ///
    /// - Returns: `nil` for an empty histogram; infinity for what is above all bounds.
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

/// What ``LoaderStatistics`` counts while loads run.
final class LoadCounters: Sendable {
    private let state = Locked(LoaderStatistics())

    var statistics: LoaderStatistics { self.state.withLock { $0 } }

    func count(_ kind: LoadActivity.Kind, _ product: LoadActivity.Product) {
        self.state.withLock { state in
            switch kind {
            case .started: state[product].started += 1
            case .joined: state[product].joined += 1
            case .hit(let source): state[product].hits[source, default: 0] += 1
            case .downloadStarted, .downloadFinished, .stored: break
            case .decoded: state.decodes += 1
            case .finished(let source, let metrics):
                state[product].finished[source, default: 0] += 1
                state.add(metrics, product)
            // Codes of parts of other kinds, such as a user's fetcher, might be any number.
            case .failed(let error):
                let isKnown = state[product].failed[error.code.description] != nil || state[product].failed.count < 100
                state[product].failed[isKnown ? error.code.description : "other", default: 0] += 1
            case .refused: state[product].refused += 1
            case .cancelled: state[product].cancelled += 1
            }
        }
    }

    @inline(never)
    func countRememberedFailure() {
        self.state.withLock { $0.rememberedFailures += 1 }
    }

    @inline(never)
    func countThumbnailOfOriginal() {
        self.state.withLock { $0.thumbnailsOfOriginals += 1 }
    }
}

extension LoaderStatistics {
    /// Takes up what a load took; a part counts where it took place.
    fileprivate mutating func add(_ metrics: LoadMetrics, _ product: LoadActivity.Product) {
        func add(_ duration: Duration, _ path: WritableKeyPath<LoaderStatistics, LatencyHistogram>) {
            if duration > .zero { self[keyPath: path].add(duration) }
        }
        switch product {
        case .picture:
            self.pictureDuration.add(metrics.total)
            add(metrics.gate, \.gate)
            add(metrics.lane, \.lane)
            add(metrics.decode, \.decode)
            add(metrics.transform, \.transform)
        case .encoded:
            self.encodedDuration.add(metrics.total)
            add(metrics.encode, \.encode)
        // What an image takes over from its bytes was counted here.
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
