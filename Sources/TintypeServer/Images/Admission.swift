// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// Decides which requests may make an image, and refuses the others at once.
///
/// The loader has queues of its own for downloads and for decodes, so that slow origins take no processor time from
/// others. This bounds the number of requests in them: by origin, so that a slow one cannot take all places; by client,
/// so that one cannot take those of all others; and in total, by the time that the last one would wait (Little's law).
final class Admission: Sendable {
    /// The reason to refuse a request.
    enum Refusal: Error, Sendable, Hashable {
        /// More requests wait than can be answered in time.
        case overload
        /// One client has as many requests as it may have while others wait.
        case client

        /// The status of the answer: 429 means that others are still served.
        var status: Int { self == .client ? 429 : 503 }
    }

    /// The place of a request, for as long as the object lives.
    final class Place: Sendable {
        private let admission: Admission
        private let origin: String
        private let client: ClientAddress
        private let number: UInt64

        fileprivate init(_ admission: Admission, _ origin: String, _ client: ClientAddress, _ number: UInt64) {
            self.admission = admission
            self.origin = origin
            self.client = client
            self.number = number
        }

        /// Reports that the request was answered with an image: such answers measure the speed of the server.
        func didMakeImage(at time: ContinuousClock.Instant) {
            self.admission.state.withLock { $0.didMakeImage(at: time) }
        }

        deinit {
            self.admission.state.withLock { $0.leave(self.origin, self.client, self.number) }
        }
    }

    private let state: Locked<AdmissionState>

    /// - Parameters:
    ///   - slotCount: The images that can be made at once.
    ///   - countLimit: The most requests at once.
    ///   - waitLimit: The longest time that a request may wait.
    init(slotCount: Int, countLimit: Int, waitLimit: Duration) {
        self.state = Locked(AdmissionState(slotCount: slotCount, countLimit: countLimit, waitLimit: waitLimit))
    }

    /// Takes a place.
    ///
    /// - Throws: ``Refusal``.
    func enter(_ origin: String, _ client: ClientAddress, at time: ContinuousClock.Instant) throws(Refusal) -> Place {
        let number = try self.state.withLock { (state) throws(Refusal) in try state.enter(origin, client, at: time) }
        return Place(self, origin, client, number)
    }

    /// Returns the reason why a request would be refused now, or `nil`.
    func refusal(_ origin: String, _ client: ClientAddress) -> Refusal? {
        self.state.withLock { $0.refusal(origin, client) }
    }

    /// The number of requests that have a place, the most there may be, and the age of the oldest.
    func figures(at time: ContinuousClock.Instant) -> (count: Int, limit: Int, oldest: Duration) {
        self.state.withLock { ($0.count, $0.limit, $0.oldestAge(at: time)) }
    }
}

/// The places of requests, as a pure value.
struct AdmissionState {
    private let slotCount: Int
    private let countLimit: Int
    private let waitLimit: Duration
    private var starts: [UInt64: ContinuousClock.Instant] = [:]
    private var origins: [String: Int] = [:]
    private var clients: [ClientAddress: Int] = [:]
    private var lastNumber: UInt64 = 0
    /// The mean time between two images while there is work, in seconds; `nil` until it is known.
    private var interval: Double?
    private var lastImage: ContinuousClock.Instant?

    init(slotCount: Int, countLimit: Int, waitLimit: Duration) {
        self.slotCount = max(1, slotCount)
        // The bound keeps sums of limits from an overflow.
        self.countLimit = min(max(2, countLimit), 1 << 30)
        self.waitLimit = waitLimit
    }

    var count: Int { self.starts.count }

    /// The most requests at once: as many as are answered within the time limit at the present speed.
    var limit: Int {
        guard let interval, interval > 0 else { return self.countLimit }
        let waiting = (self.waitLimit / .seconds(1)) / interval
        return min(self.countLimit, self.slotCount * 2 + Int(min(waiting, 1e6)))
    }

    func refusal(_ origin: String, _ client: ClientAddress) -> Admission.Refusal? {
        let limit = self.limit
        guard self.count < 4 * limit, self.origins[origin, default: 0] < limit else { return .overload }
        // Alone, a client may have all places: behind a proxy, all clients seem one.
        let network = client.network
        let hasOthers = self.clients.keys.contains { $0 != network }
        return hasOthers && self.clients[network, default: 0] >= max(1, limit / 2) ? .client : nil
    }

    mutating func enter(
        _ origin: String,
        _ client: ClientAddress,
        at time: ContinuousClock.Instant
    ) throws(Admission.Refusal) -> UInt64 {
        if let refusal = self.refusal(origin, client) { throw refusal }
        if self.starts.isEmpty { self.lastImage = nil }
        self.lastNumber += 1
        self.starts[self.lastNumber] = time
        self.origins[origin, default: 0] += 1
        self.clients[client.network, default: 0] += 1
        return self.lastNumber
    }

    mutating func leave(_ origin: String, _ client: ClientAddress, _ number: UInt64) {
        self.starts[number] = nil
        Self.decrease(&self.origins, origin)
        Self.decrease(&self.clients, client.network)
    }

    /// Counts an image: the time since the last one is what one image takes.
    mutating func didMakeImage(at time: ContinuousClock.Instant) {
        defer { self.lastImage = time }
        // Only while all slots are busy.
        guard let lastImage, self.count > self.slotCount else { return }
        let seconds = lastImage.duration(to: time) / .seconds(1)
        self.interval = self.interval.map { $0 + (seconds - $0) / 16 } ?? seconds
    }

    func oldestAge(at time: ContinuousClock.Instant) -> Duration {
        self.starts.values.min()?.duration(to: time) ?? .zero
    }

    private static func decrease<Key: Hashable>(_ counts: inout [Key: Int], _ key: Key) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}
