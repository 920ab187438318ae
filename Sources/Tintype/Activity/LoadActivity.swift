public import TintypeCaching
import TintypeConcurrency
public import TintypeDownloading
public import TintypeImage

/// Something that happened in a loader.
///
/// Every load begins with one ``Kind/started`` and ends with one of ``Kind/finished(_:_:)``, ``Kind/failed(_:)``,
/// ``Kind/refused(_:)`` and ``Kind/cancelled``. An image that is not cached is a load of its own and one of its bytes, which
/// images of other sizes share. What is found without a load is one ``Kind/hit(_:)``.
public struct LoadActivity: Sendable {
    /// What a load makes.
    public enum Product: String, Sendable, Hashable, CaseIterable {
        /// An image.
        case picture
        /// The encoded bytes of a source.
        case bytes
        /// An image as a server sends it.
        case encoded
    }

    /// What happened.
    public enum Kind: Sendable {
        /// A load began.
        case started
        /// A caller, or the load of an image that needs bytes, joined a load under way.
        ///
        /// One that comes between the load's last activity and its end is counted, and not told of.
        case joined
        /// The product was found in a tier, and may be served.
        case hit(LoadSource)
        /// The origin is asked.
        case downloadStarted
        /// The origin has answered with a response that may be used; the bytes are the encoded ones.
        case downloadFinished(byteCount: Int, TransferMetrics)
        /// An image of this size was made of its bytes.
        case decoded(PixelSize)
        /// The product was given to these tiers to keep.
        case stored(CacheTiers)
        /// The load has made its product.
        case finished(LoadSource, LoadMetrics)
        /// The load failed.
        case failed(LoadError)
        /// The network policy refused what the load would have asked for.
        case refused(LoadError)
        /// The last caller left before the end.
        case cancelled
    }

    /// Which of the loader's loads it is about; 0 for what was found without one, or stored by the program.
    public let loadID: UInt64
    /// What the load makes.
    public let product: Product
    /// What was asked for; of a load that several callers share, by the first of them.
    public let request: ImageRequest
    /// What happened.
    public let kind: Kind
}

/// Hears of all that happens in a loader: the place for a log, for metrics and for traces.
public protocol LoadObserver: Sendable {
    /// Is told what happened, on the spot, on a thread of the loader's or of a caller; of each load in its order, one after
    /// the other.
    ///
    /// Must be quick, and must not block: loads wait for it. An observer that has more to do hands the activity on.
    func loader(didObserve activity: LoadActivity)

    /// Is told that the disk tier could not store, such as in a folder that can't be written; by default does nothing.
    ///
    /// The loader reports each code once in its life, because a folder that can't be written fails every store. The
    /// statistics of the disk count all failures (``DiskStatistics/storeErrors``). A cache that the program has made tells
    /// of stores in the background only its own ``DiskCache/Configuration/storeErrorHandler``.
    func loader(didFailToStore error: LoadError)
}

extension LoadObserver {
    public func loader(didFailToStore error: LoadError) {}
}

/// Counts what happens in a loader, and tells those that want to know.
final class ActivityCenter: Sendable {
    private let observers: [any LoadObserver]
    private let broadcast = Broadcast<LoadActivity>()
    private let toldStoreErrors = Locked<Set<LoadError.Code>>([])
    let counters = LoadCounters()

    init(_ observers: [any LoadObserver]) {
        self.observers = observers
    }

    /// Whether anything listens.
    @inline(__always)
    var isObserved: Bool { !self.observers.isEmpty || self.broadcast.hasObservers }

    func makeStream(limit: Int) -> AsyncStream<LoadActivity> { self.broadcast.makeStream(limit: limit) }

    /// Ends the streams.
    func finish() { self.broadcast.finish() }

    /// Counts and tells what happened: in a load, after all that happened there before, or without one.
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

    /// Counts what happened in a load, and tells it with what is told of that load next.
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

    /// Tells what was noted of a load, unless another thread does.
    @inline(never)
    func tellNoted(of flight: FlightState) {
        flight.activities.takeEach { self.tell($0) }
    }

    /// Tells what happened without a load, and does not count it.
    func tell(_ kind: LoadActivity.Kind, _ product: LoadActivity.Product, _ request: ImageRequest) {
        self.tell(LoadActivity(loadID: 0, product: product, request: request, kind: kind))
    }

    private func tell(_ activity: LoadActivity) {
        for observer in self.observers { observer.loader(didObserve: activity) }
        self.broadcast.send(activity)
    }

    /// Tells that a store has failed, once of each code.
    ///
    /// - Returns: The error as a load gives it to its callers.
    @discardableResult
    func tell(storing error: any Error) -> LoadError {
        let error = LoadError(storing: error)
        if !self.observers.isEmpty, self.toldStoreErrors.withLock({ $0.insert(error.code).inserted }) {
            for observer in self.observers { observer.loader(didFailToStore: error) }
        }
        return error
    }

    /// Counts and tells how a load ended.
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

/// The activities of one load that are yet to be told: those of its callers and its own, in one order.
final class ActivityQueue: Sendable {
    private struct State {
        var activities: [LoadActivity] = []
        var hasBegun = false
        var hasEnded = false
        var isTaken = false
    }

    private let state = Locked(State())

    /// Adds an activity behind the others, none after the end of the load; its beginning comes before all of them.
    func add(_ activity: LoadActivity) {
        self.state.withLock { state in
            guard !state.hasEnded else { return }
            switch activity.kind {
            case .started:
                state.activities.insert(activity, at: 0)
                state.hasBegun = true
                return
            case .finished, .failed, .refused, .cancelled: (state.hasBegun, state.hasEnded) = (true, true)
            // It may have begun before anything observed it.
            case .hit, .downloadStarted, .downloadFinished, .decoded, .stored: state.hasBegun = true
            case .joined: break
            }
            state.activities.append(activity)
        }
    }

    /// Takes the activities one by one until there are none, unless the load is yet to begin, or they are being taken.
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
    /// Whether the network policy refused the request.
    fileprivate var isRefusalByPolicy: Bool {
        [
            .schemeNotAllowed, .userInformationInURL, .malformedHost, .portNotAllowed, .hostNotAllowed,
            .addressNotAllowed,
        ].contains(self.code)
    }
}
