public import TintypeCaching
import TintypeConcurrency
public import TintypeDownloading
public import TintypeImage

/// Something that happened in a loader.
///
/// Every load begins with one ``Kind/started`` and ends with one of ``Kind/finished(_:_:)``, ``Kind/failed(_:)``,
/// ``Kind/refused(_:)`` and ``Kind/cancelled``. A picture that is not cached is a load of its own and one of its bytes, which
/// pictures of other sizes share. What is found without a load is one ``Kind/hit(_:)``.
public struct LoadActivity: Sendable {
    /// What a load makes.
    public enum Product: String, Sendable, Hashable, CaseIterable {
        /// A picture.
        case picture
        /// The encoded bytes of a source.
        case bytes
        /// A picture as a server sends it.
        case encoded
    }

    /// What happened.
    public enum Kind: Sendable {
        /// A load began.
        case started
        /// A caller, or the load of a picture that needs bytes, joined a load under way.
        case joined
        /// The product was found in a tier, and may be served.
        case hit(LoadSource)
        /// The origin is asked.
        case downloadStarted
        /// The origin has answered with a response that may be used; the bytes are the encoded ones.
        case downloadFinished(byteCount: Int, TransferMetrics)
        /// A picture of this size was made of its bytes.
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
    /// Is told what happened, on the thread on which it did, in the order of each load.
    ///
    /// Must be quick, and must not block: loads wait for it. An observer that has more to do hands the activity on.
    func loader(didObserve activity: LoadActivity)
}

/// Counts what happens in a loader, and tells those that want to know.
final class ActivityCenter: Sendable {
    private let observers: [any LoadObserver]
    private let broadcast = Broadcast<LoadActivity>()
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

    /// Counts and tells what happened.
    func send(_ kind: LoadActivity.Kind, _ product: LoadActivity.Product, _ request: ImageRequest, load id: UInt64) {
        self.counters.count(kind, product)
        if self.isObserved { self.tell(kind, product, request, load: id) }
    }

    /// Tells what happened, and does not count it.
    func tell(_ kind: LoadActivity.Kind, _ product: LoadActivity.Product, _ request: ImageRequest, load id: UInt64) {
        let activity = LoadActivity(loadID: id, product: product, request: request, kind: kind)
        for observer in self.observers { observer.loader(didObserve: activity) }
        self.broadcast.send(activity)
    }

    /// Counts and tells how a load ended.
    func sendEnd(of product: LoadActivity.Product, _ request: ImageRequest, load id: UInt64, _ error: any Error) {
        guard !(error is CancellationError), let error = LoadError.wrapping(error) as? LoadError else {
            return self.send(.cancelled, product, request, load: id)
        }
        self.send(error.isRefusalByPolicy ? .refused(error) : .failed(error), product, request, load: id)
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
