// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
public import TintypeDownloading
import TintypeRendering

/// The durations of a load and its parts.
///
/// A part that did not take place is zero. For an image in memory, and for bytes that the disk had ready, all parts are
/// zero except ``total``. Parts may overlap: a store runs beside the decode unless the load waits for it.
public struct LoadMetrics: Sendable, Hashable {
    /// The time from the call to its result.
    ///
    /// If the call joined a load under way, it is shorter than the parts
    /// together.
    public internal(set) var total: Duration = .zero
    /// The wait for the right to ask the origin, for a place among the downloads, and between retries.
    public internal(set) var queue: Duration = .zero
    /// The phases of the transfer: name, connection, TLS, first byte, last byte; `nil` without a transfer.
    public internal(set) var transfer: TransferMetrics?
    /// Look-ups and reads on disk.
    public internal(set) var disk: Duration = .zero
    /// The wait for the memory of the decode.
    public internal(set) var gate: Duration = .zero
    /// The wait for a decode lane.
    public internal(set) var lane: Duration = .zero
    /// The decode, including a resize while rows are decoded.
    public internal(set) var decode: Duration = .zero
    /// The resize, the conversion to sRGB and the turn upright.
    public internal(set) var transform: Duration = .zero
    /// The encode.
    public internal(set) var encode: Duration = .zero
    /// The store on disk, if the load waited for it.
    public internal(set) var store: Duration = .zero
    /// The number of encoded bytes that were received or read.
    public internal(set) var byteCount = 0
    /// The name of the byte tier that had the encoded bytes or the image, such as `disk`; `nil` if none had them.
    public internal(set) var tier: String?
    /// Whether the call joined a load that was under way.
    public internal(set) var isJoined = false

    /// Adds the durations of a load for which this one has waited.
    fileprivate mutating func add(_ other: LoadMetrics) {
        self.queue += other.queue
        self.transfer = other.transfer ?? self.transfer
        self.disk += other.disk
        self.gate += other.gate
        self.lane += other.lane
        self.decode += other.decode
        self.transform += other.transform
        self.encode += other.encode
        self.store += other.store
        self.byteCount = max(self.byteCount, other.byteCount)
        self.tier = self.tier ?? other.tier
    }
}

extension LoadMetrics: CustomStringConvertible {
    /// The total and the parts that took place, in milliseconds, such as `12.5 ms (transfer 8.1, decode 3.9), 48201
    /// bytes`.
    public var description: String {
        let parts: [(String, Duration)] = [
            ("queue", self.queue), ("transfer", self.transfer?.total ?? .zero), ("disk", self.disk),
            ("gate", self.gate),
            ("lane", self.lane), ("decode", self.decode), ("transform", self.transform), ("encode", self.encode),
            ("store", self.store),
        ]
        let shown = parts.filter { $0.1 > .zero }.map { "\($0.0) \(Self.milliseconds($0.1))" }
        var text = "\(Self.milliseconds(self.total)) ms"
        if !shown.isEmpty { text += " (\(shown.joined(separator: ", ")))" }
        if self.byteCount > 0 { text += ", \(self.byteCount) bytes" }
        return self.isJoined ? text + ", joined" : text
    }

    /// At most three digits after the point: microseconds.
    private static func milliseconds(_ duration: Duration) -> String {
        "\((duration / .microseconds(1)).rounded() / 1_000)"
    }
}

/// The durations of a load under way, recorded on the threads of its parts.
final class LoadRecord: Sendable {
    /// A part of a load whose duration is recorded.
    typealias Part = any WritableKeyPath<LoadMetrics, Duration> & Sendable

    private let state = Locked(LoadMetrics())

    /// The durations so far.
    var metrics: LoadMetrics { self.state.withLock { $0 } }

    /// Adds the time from `start` until now to a part.
    func end(_ part: Part, since start: ContinuousClock.Instant) {
        self.add(start.duration(to: .now), to: part)
    }

    func add(_ duration: Duration, to part: Part) {
        self.state.withLock { $0[keyPath: part] += max(.zero, duration) }
    }

    /// Records the duration of `work`, even if it fails.
    func timing<Result, Failure: Error>(
        _ part: Part,
        _ work: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        let start = ContinuousClock.now
        defer { self.end(part, since: start) }
        return try await work()
    }

    func note(tier: String?) {
        self.state.withLock { $0.tier = tier }
    }

    func note(byteCount: Int) {
        self.state.withLock { $0.byteCount = byteCount }
    }

    /// Records a transfer that took `duration` in all, waiting included.
    func note(_ transfer: TransferMetrics, within duration: Duration) {
        self.state.withLock { metrics in
            metrics.transfer = transfer
            metrics.queue += max(.zero, duration - transfer.total)
        }
    }

    /// Adds the durations of a load for which this one has waited.
    func add(_ other: LoadRecord?) {
        guard let other, other !== self else { return }
        let metrics = other.metrics
        self.state.withLock { $0.add(metrics) }
    }
}

extension LoadRecord: RenderingObserver {
    func didEnd(_ phase: RenderingPhase, since start: ContinuousClock.Instant) {
        let part: Part =
            switch phase {
            case .gate: \.gate
            case .lane: \.lane
            case .decode: \.decode
            case .transform: \.transform
            case .encode: \.encode
            }
        self.end(part, since: start)
    }
}

/// The durations of a call and of its load.
struct CallRecord: Sendable {
    let load: LoadRecord?
    let total: Duration
    let isJoined: Bool

    var metrics: LoadMetrics {
        var metrics = self.load?.metrics ?? LoadMetrics()
        metrics.total = self.total
        metrics.isJoined = self.isJoined
        return metrics
    }
}
