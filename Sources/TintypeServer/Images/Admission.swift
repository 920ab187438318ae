// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// Decides which requests may make an image, and refuses the others at once.
///
/// The loader has separate queues for downloads and for decodes, so that slow origins take no processor time from
/// others. This class limits the requests in the queues. No origin and no client can take all places, and the last
/// request waits no longer than it may (Little's law).
final class Admission: Sendable {
    /// The reason to refuse a request.
    enum Refusal: Error, Sendable, Hashable {
        /// More requests wait than can be answered in time.
        case overload
        /// The client has all the places that it may have beside other clients.
        case client

        /// The status of the answer: 429 means that other clients are still served.
        var status: Int { self == .client ? 429 : 503 }
    }

    /// The place of a request, for as long as the object lives.
    final class Place: Sendable {
        private let admission: Admission
        private let origin: String
        private let client: ClientAddress
        private let number: UInt64
        /// Whether lanes have begun to work for a request that has this place.
        let laneUse = LaneUse()

        fileprivate init(_ admission: Admission, _ origin: String, _ client: ClientAddress, _ number: UInt64) {
            self.admission = admission
            self.origin = origin
            self.client = client
            self.number = number
        }

        /// Reports the time that a lane has worked on the image, which measures the speed of the server.
        func didMakeImage(in time: Duration) {
            self.admission.state.withLock { $0.didMakeImage(in: time, at: .now) }
        }

        deinit {
            self.admission.state.withLock { $0.leave(self.origin, self.client, self.number) }
        }
    }

    private let state: Locked<AdmissionState>

    /// - Parameters:
    ///   - slotCount: The images that can be made at once.
    ///   - countLimit: The most requests to one origin at once. All origins together have four times as many.
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

    /// Returns the seconds that a client should wait after a refusal.
    func retrySeconds(after refusal: Refusal, _ client: ClientAddress, at time: ContinuousClock.Instant) -> Int {
        self.state.withLock { $0.retrySeconds(after: refusal, client, at: time) }
    }

    /// The number of requests that have a place, the limit on that number, and the age of the oldest request.
    func figures(at time: ContinuousClock.Instant) -> (count: Int, limit: Int, oldest: Duration) {
        self.state.withLock { ($0.count, $0.totalLimit, $0.oldestAge(at: time)) }
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
    /// The requests of each client to each origin.
    private var pairs: [Pair: Int] = [:]
    private var lastNumber: UInt64 = 0
    /// The mean time in seconds that a lane works on an image; an estimate at first.
    private var laneTime = AdmissionState.firstLaneTime
    private var lastImage: ContinuousClock.Instant?
    /// The times at which the refused clients should come back.
    private var returns: [ClientAddress: ContinuousClock.Instant] = [:]
    private var lastReturn: ContinuousClock.Instant?

    private static let firstLaneTime = 0.05
    /// The time without an image after which an idle server returns to the first estimate of its lane time.
    private static let restTime: Duration = .seconds(10)
    /// The number of clients that may return for each image that the server can make, because some never return.
    private static let clientsPerImage = 4.0
    private static let retrySeconds = 1.0...30
    /// The most refused clients to remember; if there are more, the server forgets them all.
    private static let returnLimit = 16_384

    private struct Pair: Hashable {
        let origin: String
        let client: ClientAddress
    }

    init(slotCount: Int, countLimit: Int, waitLimit: Duration) {
        self.slotCount = max(1, slotCount)
        // The upper bound prevents overflows in sums of limits.
        self.countLimit = min(max(2, countLimit), 1 << 30)
        self.waitLimit = waitLimit
    }

    var count: Int { self.starts.count }

    /// The most requests to one origin at once: as many as the lanes answer within the time limit.
    var limit: Int {
        let waiting = self.waitLimit / .seconds(1) * Double(self.slotCount) / max(self.laneTime, 1e-6)
        return min(self.countLimit, self.slotCount * 2 + Int(min(waiting, 1e6)))
    }

    /// The most requests at once.
    ///
    /// Some wait for slow origins, so this is more than the lanes could answer in time.
    var totalLimit: Int { 4 * self.limit }

    func refusal(_ origin: String, _ client: ClientAddress) -> Admission.Refusal? {
        let (limit, total) = (self.limit, self.totalLimit)
        let network = client.network
        let hasOthers = self.clients.keys.contains { $0 != network }
        // The shares leave places for one more client. A client alone may have three quarters, because behind a proxy
        // all clients look like one.
        let clientCount = self.clients.count + (self.clients[network] == nil ? 1 : 0)
        func isOver(_ count: Int, _ limit: Int) -> Bool {
            count >= max(1, hasOthers ? limit / (clientCount + 1) : limit * 3 / 4)
        }
        if isOver(self.clients[network, default: 0], total)
            || isOver(self.pairs[Pair(origin: origin, client: network), default: 0], limit)
        {
            return hasOthers ? .client : .overload
        }
        return self.count < total && self.origins[origin, default: 0] < limit ? nil : .overload
    }

    /// Returns the seconds that a client should wait after a refusal.
    ///
    /// Clients return one after the other, four for each image that the server can make, because some never return. If
    /// all returned after a second, the server would spend its time on refusing them again. A client that returns early
    /// gets the same time again, so it cannot delay the others.
    mutating func retrySeconds(
        after refusal: Admission.Refusal,
        _ client: ClientAddress,
        at time: ContinuousClock.Instant
    ) -> Int {
        let limits = Self.retrySeconds
        guard refusal == .overload else { return Int(limits.lowerBound) }
        let first = time + .seconds(limits.lowerBound)
        if let known = self.returns[client.network], known >= first { return Self.seconds(from: time, to: known) }
        let step = self.laneTime / Double(self.slotCount) / Self.clientsPerImage
        let next = max(first, (self.lastReturn ?? first) + .seconds(step))
        let last = min(next, time + .seconds(limits.upperBound))
        self.lastReturn = last
        if self.returns.count >= Self.returnLimit { self.returns = [:] }
        self.returns[client.network] = last
        return Self.seconds(from: time, to: last)
    }

    private static func seconds(from time: ContinuousClock.Instant, to end: ContinuousClock.Instant) -> Int {
        Int((time.duration(to: end) / .seconds(1)).rounded())
    }

    mutating func enter(
        _ origin: String,
        _ client: ClientAddress,
        at time: ContinuousClock.Instant
    ) throws(Admission.Refusal) -> UInt64 {
        if let refusal = self.refusal(origin, client) { throw refusal }
        // So few requests have places that the refused clients cannot have returned. Call the next ones back sooner.
        if self.count < self.limit / 2, self.lastReturn != nil {
            self.lastReturn = nil
            self.returns = [:]
        }
        if self.starts.isEmpty, let lastImage, lastImage.duration(to: time) > Self.restTime {
            self.laneTime = Self.firstLaneTime
        }
        self.lastNumber += 1
        self.starts[self.lastNumber] = time
        self.origins[origin, default: 0] += 1
        self.clients[client.network, default: 0] += 1
        self.pairs[Pair(origin: origin, client: client.network), default: 0] += 1
        return self.lastNumber
    }

    mutating func leave(_ origin: String, _ client: ClientAddress, _ number: UInt64) {
        self.starts[number] = nil
        Self.decrease(&self.origins, origin)
        Self.decrease(&self.clients, client.network)
        Self.decrease(&self.pairs, Pair(origin: origin, client: client.network))
    }

    /// Updates the mean with the time that a lane worked on an image.
    ///
    /// The wait for the origin does not count. Otherwise idle lanes would look slow. A few large images say little about
    /// the next ones, so a time counts as at most four times the mean.
    mutating func didMakeImage(in duration: Duration, at time: ContinuousClock.Instant) {
        self.laneTime += (min(duration / .seconds(1), 4 * self.laneTime) - self.laneTime) / 16
        self.lastImage = time
    }

    func oldestAge(at time: ContinuousClock.Instant) -> Duration {
        self.starts.values.min()?.duration(to: time) ?? .zero
    }

    private static func decrease<Key: Hashable>(_ counts: inout [Key: Int], _ key: Key) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}

extension WorkClient {
    /// Creates the client for an address; all addresses of a network are one client.
    init(_ address: ClientAddress) {
        self.init(number: address.network.number)
    }
}
