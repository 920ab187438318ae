// SPDX-License-Identifier: Apache-2.0

public import TintypeCaching
import TintypeConcurrency
public import TintypeDownloading
import TintypeFlights
public import TintypeImage
import TintypeRequests

/// An event in a loader.
///
/// Every load begins with one ``Kind/started`` and ends with one of ``Kind/finished(_:_:)``, ``Kind/failed(_:)``,
/// ``Kind/refused(_:)`` and ``Kind/cancelled``. An image that is not cached is two loads: its own, and that of its
/// bytes, which images of other sizes share. A product that is found without a load is one ``Kind/hit(_:tier:)``.
public struct LoadActivity: Sendable {
    /// The product of a load.
    public enum Product: String, Sendable, Hashable, CaseIterable {
        /// An image.
        case image
        /// The encoded bytes of a source.
        case bytes
        /// An encoded image.
        case encoded
    }

    /// The kind of an event.
    public enum Kind: Sendable {
        /// A load began.
        case started
        /// A caller, or the load of an image that needs bytes, joined a load under way.
        ///
        /// One that comes between the load's last event and its end is counted, but not reported.
        case joined
        /// A tier has the product, and may answer; the name of the tier, if it is a byte tier.
        case hit(LoadSource, tier: String?)
        /// The load asks the origin.
        case downloadStarted
        /// The origin has answered with a response that may be used, with so many encoded bytes.
        case downloadFinished(byteCount: Int, TransferMetrics)
        /// The load has decoded an image of this size.
        case decoded(PixelSize)
        /// The load has handed the product to these tiers.
        case stored(CacheTiers)
        /// The load has its product.
        case finished(LoadSource, LoadMetrics)
        /// The load failed.
        case failed(LoadError)
        /// The network policy has refused the request of the load.
        case refused(LoadError)
        /// The last caller has left before the end.
        case cancelled
    }

    /// The number of the load; 0 without a load.
    public let loadID: UInt64
    /// The product.
    public let product: Product
    /// The request; the first caller's if several callers share the load.
    public let request: ImageRequest
    /// The kind of the event.
    public let kind: Kind
}

/// An observer of the events of a loader, for logs, metrics and traces.
///
/// ```swift
/// struct FailureLog: LoadObserver {
///     func loader(didObserve activity: LoadActivity) {
///         if case .failed(let error) = activity.kind { print(activity.request.url, error) }
///     }
/// }
/// ```
public protocol LoadObserver: Sendable {
    /// Receives an event at once, on a thread of the loader or of a caller. The events of a load come in order, one
    /// after the other.
    ///
    /// Must be quick, and must not block, because loads wait for it.
    func loader(didObserve activity: LoadActivity)

    /// Receives an error of a store on disk, such as for a folder that cannot be written; by default does nothing.
    ///
    /// The loader reports each code once in its life, because such a folder fails every store. The statistics of the
    /// disk count all failures (``DiskStatistics/storeErrors``). A cache that the program has made reports background
    /// stores only to its own ``DiskCache/Configuration/storeErrorHandler``.
    func loader(didFailToStore error: LoadError)
}

extension LoadObserver {
    public func loader(didFailToStore error: LoadError) {}
}

/// Counts the events of a loader, and reports them to observers and streams.
final class ActivityCenter: Sendable {
    private let observers: [any LoadObserver]
    private let broadcast = Broadcast<LoadActivity>()
    private let toldStoreErrors = Locked<Set<LoadError.Code>>([])
    let counters = LoadCounters()

    init(_ observers: [any LoadObserver]) {
        self.observers = observers
    }

    /// Whether there is an observer or a stream.
    @inline(__always)
    var isObserved: Bool { !self.observers.isEmpty || self.broadcast.hasObservers }

    func makeStream(limit: Int) -> AsyncStream<LoadActivity> { self.broadcast.makeStream(limit: limit) }

    /// Ends the streams.
    func finish() { self.broadcast.finish() }

    /// Counts and reports an event, after all earlier events of the same load.
    @inline(never)
    func send(
        _ kind: LoadActivity.Kind,
        _ product: LoadActivity.Product,
        _ request: ImageRequest,
        of flight: FlightState?
    ) {
        guard let flight else {
            self.counters.count(kind, product)
            if self.isObserved { self.tell(kind, product, request) }
            return
        }
        self.note(kind, product, request, of: flight)
        self.tellNoted(of: flight)
    }

    /// Counts an event of a load, and reports it together with the next one.
    @inline(never)
    func note(
        _ kind: LoadActivity.Kind,
        _ product: LoadActivity.Product,
        _ request: ImageRequest,
        of flight: FlightState
    ) {
        self.counters.count(kind, product)
        guard self.isObserved else { return }
        flight.activities.add(LoadActivity(loadID: flight.id, product: product, request: request, kind: kind))
    }

    /// Reports the noted events of a load, unless another thread does.
    @inline(never)
    func tellNoted(of flight: FlightState) {
        flight.activities.takeEach { self.tell($0) }
    }

    /// Reports an event without a load, and does not count it.
    func tell(_ kind: LoadActivity.Kind, _ product: LoadActivity.Product, _ request: ImageRequest) {
        self.tell(LoadActivity(loadID: 0, product: product, request: request, kind: kind))
    }

    private func tell(_ activity: LoadActivity) {
        for observer in self.observers { observer.loader(didObserve: activity) }
        self.broadcast.send(activity)
    }

    /// Reports a failed store, once for each code.
    ///
    /// - Returns: The error for callers of loads.
    @discardableResult
    func tell(storing error: any Error) -> LoadError {
        let error = LoadError(storing: error)
        if !self.observers.isEmpty, self.toldStoreErrors.withLock({ $0.insert(error.code).inserted }) {
            for observer in self.observers { observer.loader(didFailToStore: error) }
        }
        return error
    }

    /// Counts and reports the end of a load.
    func sendEnd(
        of product: LoadActivity.Product,
        _ request: ImageRequest,
        of flight: FlightState,
        _ error: any Error
    ) {
        guard !(error is CancellationError), let error = LoadError.wrapping(error) as? LoadError else {
            return self.send(.cancelled, product, request, of: flight)
        }
        self.send(error.isRefusalByPolicy ? .refused(error) : .failed(error), product, request, of: flight)
    }
}

/// The events of one load and its callers that were not reported yet, in one order.
final class ActivityQueue: Sendable {
    private struct State {
        var activities: [LoadActivity] = []
        var hasBegun = false
        var hasEnded = false
        var isTaken = false
    }

    private let state = Locked(State())

    /// Adds an event.
    ///
    /// The start of the load comes first, and nothing comes after its end.
    func add(_ activity: LoadActivity) {
        self.state.withLock { state in
            guard !state.hasEnded else { return }
            switch activity.kind {
            case .started:
                state.activities.insert(activity, at: 0)
                state.hasBegun = true
                return
            case .finished, .failed, .refused, .cancelled: (state.hasBegun, state.hasEnded) = (true, true)
            // The load may have begun before there was an observer.
            case .hit, .downloadStarted, .downloadFinished, .decoded, .stored: state.hasBegun = true
            case .joined: break
            }
            state.activities.append(activity)
        }
    }

    /// Takes all events, one by one, unless the load has not begun or another thread takes them.
    func takeEach(_ body: (LoadActivity) -> Void) {
        let isFirst = self.state.withLock { state in
            guard state.hasBegun, !state.isTaken else { return false }
            state.isTaken = true
            return true
        }
        guard isFirst else { return }
        while let activities = self.next() {
            for activity in activities { body(activity) }
        }
    }

    private func next() -> [LoadActivity]? {
        self.state.withLock { state in
            guard !state.activities.isEmpty else {
                state.isTaken = false
                return nil
            }
            defer { state.activities = [] }
            return state.activities
        }
    }
}

extension LoadError {
    /// Whether the network policy has refused the request.
    fileprivate var isRefusalByPolicy: Bool {
        [
            .schemeNotAllowed, .userInformationInURL, .malformedHost, .portNotAllowed, .hostNotAllowed,
            .addressNotAllowed,
        ].contains(self.code)
    }
}

extension LoadActivity.Product {
    /// The product of a flight as activities name it.
    init(_ kind: FlightTable.Product.Kind) {
        self =
            switch kind {
            case .bytes: .bytes
            case .encoded: .encoded
            case .image, .decode, .store: .image
            }
    }
}
