// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeFlights

/// The result of a flight.
protocol FlightOutput: Sendable {
    /// Where the product came from.
    var source: LoadSource { get }
    /// The durations of the load, and of the call that got the product.
    var call: CallRecord? { get set }
    /// The consequences for other flights.
    var effect: FlightEffect { get }
    /// Returns the product for waiters that make images of it together; other waiters get the product itself.
    func divided(among wishes: [FlightTable.ID: DecodeWish]) -> [FlightTable.ID: Self]
}

extension FlightOutput {
    var source: LoadSource { .memory }
    var call: CallRecord? {
        get { nil }
        set {}
    }
    var effect: FlightEffect { .none }
    func divided(among wishes: [FlightTable.ID: DecodeWish]) -> [FlightTable.ID: Self] { [:] }
}

/// The consequences of a product for other flights.
enum FlightEffect: Sendable {
    case none
    /// A body has come, which may be the newest of its source.
    case brought(UInt64, BodyOrder.Arrival, Date?, FetchedResponse?)
    /// The cache has a product that was made of a body.
    case kept(madeOf: UInt64)
    /// The disk has an entry that was made of a body.
    case stored(CacheKey, madeOf: UInt64)
}

/// A product that may be in the cache.
struct Kept<Response: LoadResponse>: FlightOutput {
    var response: Response
    /// Whether the cache has it now.
    var isKept: Bool

    init(_ response: Response, isKept: Bool) {
        self.response = response
        self.isKept = isKept
    }

    var source: LoadSource { self.response.source }
    var call: CallRecord? {
        get { self.response.call }
        set { self.response.call = newValue }
    }
    var effect: FlightEffect {
        guard self.isKept, let body = self.response.metadata.bodyDigest else { return .none }
        return .kept(madeOf: body)
    }
}

/// A response that callers get.
protocol LoadResponse: Sendable {
    var source: LoadSource { get }
    var metadata: EntryMetadata { get }
    var call: CallRecord? { get set }
}

/// An entry on disk that a flight has stored in the background.
struct StoredEntry: FlightOutput {
    let key: CacheKey
    let body: UInt64?

    var effect: FlightEffect { self.body.map { .stored(self.key, madeOf: $0) } ?? .none }
}

/// The making of one product for all of its waiters.
final class Flight<Output: FlightOutput>: AnyFlight {
    let state: FlightState
    private let waiters = Locked<[FlightTable.ID: FlightWaiter<Output>]>([:])

    init(_ state: FlightState) {
        self.state = state
    }

    func add(_ waiter: FlightWaiter<Output>, observer: FlightState.Observer?) {
        self.waiters.withLock { $0[waiter.id] = waiter }
        if let observer { self.state.add(observer, for: waiter.id) }
    }

    func dismiss(_ waiter: FlightTable.ID) {
        self.state.removeObserver(of: waiter)
        self.waiters.withLock { $0.removeValue(forKey: waiter) }?.end(with: .failure(CancellationError()))
    }

    /// Ends the waits of `ids`; waiters that make images of one body together share decodes.
    func resume(_ ids: [FlightTable.ID], with result: Result<Output, any Error>) {
        let waiters = self.waiters.withLock { waiters in ids.compactMap { waiters.removeValue(forKey: $0) } }
        guard case .success(let output) = result, waiters.count > 1 else {
            for waiter in waiters { waiter.end(with: result) }
            return
        }
        let wishes = waiters.reduce(into: [FlightTable.ID: DecodeWish]()) { $0[$1.id] = $1.wish }
        let parts = wishes.isEmpty ? [:] : output.divided(among: wishes)
        for waiter in waiters { waiter.end(with: parts[waiter.id].map { .success($0) } ?? result) }
    }
}

/// A flight, whatever its product.
protocol AnyFlight: AnyObject, Sendable {
    var state: FlightState { get }
    /// Ends the wait of a waiter that has left.
    func dismiss(_ waiter: FlightTable.ID)
}

/// The wait of a caller or of a flight.
///
/// It ends once: with the result, or as soon as the waiting task is cancelled.
final class FlightWaiter<Output: Sendable>: Sendable {
    private enum State {
        case pending
        case waiting(CheckedContinuation<Output, any Error>)
        case ended(Result<Output, any Error>)
        case over
    }

    let id: FlightTable.ID
    /// The flight, if it was under way when the wait began.
    let joinedFlight: FlightState?
    /// The image that the waiter makes of the bytes for which it waits.
    let wish: DecodeWish?
    private let state = Locked(State.pending)

    init(id: FlightTable.ID, joinedFlight: FlightState? = nil, wish: DecodeWish? = nil) {
        self.id = id
        self.joinedFlight = joinedFlight
        self.wish = wish
    }

    /// Returns the result to the one task that waits.
    ///
    /// - Throws: The error of the flight; `CancellationError` as soon as the task is cancelled.
    func result() async throws -> Output {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = self.state.withLock { state -> Result<Output, any Error>? in
                    guard case .ended(let result) = state else {
                        state = .waiting(continuation)
                        return nil
                    }
                    state = .over
                    return result
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            self.end(with: .failure(CancellationError()))
        }
    }

    /// Ends the wait; later calls do nothing.
    func end(with result: Result<Output, any Error>) {
        let continuation = self.state.withLock { state -> CheckedContinuation<Output, any Error>? in
            switch state {
            case .pending: state = .ended(result)
            case .waiting(let continuation):
                state = .over
                return continuation
            case .ended, .over: break
            }
            return nil
        }
        continuation?.resume(with: result)
    }
}
