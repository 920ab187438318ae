// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency
import TintypeDownloading
import TintypeFlights
import TintypeImage
import TintypeRendering
import TintypeRequests

/// An event on the way to an image or its bytes.
enum LoadUpdate: Sendable {
    case progress(TransferProgress)
    /// Bytes of the body, for observers that make previews.
    case bytes(Data)
    case preview(Image)
    case cached(ImageResponse)
}

/// A request under way and its fetcher.
struct Fetch: Sendable {
    let request: DownloadRequest
    let fetcher: any ImageFetching
}

/// A response that a flight has fetched from its origin.
struct FetchedResponse: Sendable {
    let flight: FlightTable.ID
    let name: ResponseName
}

/// The state of a flight that its work and its observers reach without entering the actor: the demand, the observers, and the
/// newest body of its source.
final class FlightState: Sendable {
    /// A receiver of the updates of a flight.
    enum Observer: Sendable {
        case caller(@Sendable (LoadUpdate) -> Void)
        /// The flight of an image. It hands updates on to its own observers, and makes previews of the bytes.
        case flight(FlightState, previews: ByteMailbox?)

        func see(_ update: LoadUpdate) {
            switch (self, update) {
            case (.caller(let see), _): see(update)
            case (.flight(_, let previews), .bytes(let bytes)): previews?.put(bytes)
            case (.flight(let flight, _), _): flight.report(update)
            }
        }
    }

    private enum KeptPreviews {
        case none, some, over
    }

    private struct State {
        var demand: Demand
        var newestBody: UInt64?
        /// The latest response of each name that flights have fetched from the origin meanwhile, the latest last.
        var fetched: [FetchedResponse] = []
        var observers: [FlightTable.ID: Observer] = [:]
        /// The observers that have missed bytes, and therefore get none.
        var latecomers: Set<FlightTable.ID> = []
        var hasShownBytes = false
        var keptPreviews = KeptPreviews.none
        var latest: LoadUpdate?
        var fetch: Fetch?
        var isAbandoned = false
        var isKeeping = false
    }

    let id: FlightTable.ID
    /// Whether the flight may ask the origin at once.
    let hasTurn: Bool
    /// The durations of its parts so far.
    let record = LoadRecord()
    /// The activities that were not reported yet.
    let activities = ActivityQueue()
    private let state: Locked<State>

    init(id: FlightTable.ID, demand: Demand, hasTurn: Bool, newestBody: UInt64?) {
        self.id = id
        self.hasTurn = hasTurn
        self.state = Locked(State(demand: demand, newestBody: newestBody))
    }

    /// Records the newest body of the source.
    func note(newestBody body: UInt64) {
        self.state.withLock { $0.newestBody = body }
    }

    /// Records a response that a flight has fetched from the same origin, for this source or another one.
    func note(_ response: FetchedResponse) {
        self.state.withLock { state in
            state.fetched.removeAll { $0.name == response.name }
            state.fetched.append(response)
        }
    }

    /// Returns whether no later response of the origin takes the place of `response` on disk.
    @inline(never)
    func isLatest(_ response: FetchedResponse) -> Bool {
        self.state.withLock { state in
            let later = state.fetched.lastIndex { $0.flight == response.flight }.map { $0 + 1 } ?? 0
            return state.fetched[later...].allSatisfy { $0.name.isApart(from: response.name) }
        }
    }

    /// Returns whether a product that was made of `body` may be stored: no newer body is known.
    func admits(_ body: UInt64?) -> Bool {
        guard let body else { return true }
        return self.state.withLock { $0.newestBody == nil || $0.newestBody == body }
    }

    /// Returns whether `body` is known to be the newest one.
    func isNewest(_ body: UInt64?) -> Bool {
        body != nil && self.state.withLock { $0.newestBody == body }
    }

    /// Records that a preview is about to be stored in memory.
    ///
    /// - Returns: Whether it may be.
    func beginKeepingPreview() -> Bool {
        self.state.withLock { state in
            guard state.keptPreviews != .over else { return false }
            state.keptPreviews = .some
            return true
        }
    }

    /// Records that no preview may be stored any more: the image is stored, or the flight is over.
    ///
    /// - Returns: Whether an earlier one may be left in memory.
    @discardableResult
    func endKeepingPreviews() -> Bool {
        self.state.withLock { state in
            defer { state.keptPreviews = .over }
            return state.keptPreviews == .some
        }
    }

    /// Whether no preview may be stored any more.
    var keepsNoPreview: Bool { self.state.withLock { $0.keptPreviews == .over } }

    /// The demand of the waiters at this moment.
    var demand: Demand { self.state.withLock { $0.demand } }

    /// Changes the demand.
    ///
    /// - Returns: The fetch under way, if its priority has changed.
    func change(_ demand: Demand) -> Fetch? {
        self.state.withLock { state in
            defer { state.demand = demand }
            return state.demand.priority == demand.priority ? nil : state.fetch
        }
    }

    /// Runs a fetch, which reads its priority when it begins.
    func running<Result>(
        _ fetch: Fetch,
        _ run: (_ priority: @escaping @Sendable () -> DownloadPriority) async throws -> Result
    ) async rethrows -> Result {
        // In this order: the fetch reads a priority that has changed before, and is told of later changes.
        self.note(fetch)
        defer { self.note(nil) }
        return try await run { self.demand.priority }
    }

    /// Records the fetch under way.
    ///
    /// Must not be inlined, like the functions below: in an asynchronous function with a suspension in between, the lock would
    /// be released with the identity of the thread that took it before, and would trap (Swift 6.3, optimised).
    @inline(never)
    private func note(_ fetch: Fetch?) {
        self.state.withLock { $0.fetch = fetch }
    }

    // MARK: Its end

    /// Whether the last waiter has left: only then may the work end with a cancellation.
    var isAbandoned: Bool {
        @inline(never) get { self.state.withLock { $0.isAbandoned } }
    }

    /// Returns the error with which the flight ends if its work threw `error`.
    ///
    /// A hook or a coder of the program may throw a `CancellationError` although the flight was not abandoned, or cancel the
    /// task that it runs in. Callers must not mistake that for their own cancellation.
    func failure(of error: any Error, _ request: ImageRequest) -> any Error {
        guard error is CancellationError, !self.isAbandoned else { return error }
        return LoadError(
            code: .refused,
            message: "A hook, a coder or the downloader gave up on \(request.displayURL) as if it had been cancelled; "
                + "ask again."
        )
    }

    /// Records that the last waiter has left.
    ///
    /// - Returns: Whether the flight may lose its turn at once: it has not begun to store anything, and never will.
    func abandon() -> Bool {
        self.state.withLock { state in
            state.isAbandoned = true
            return !state.isKeeping
        }
    }

    /// Begins to store the product, so that the flight has its turn until it ends.
    ///
    /// - Throws: `CancellationError` if the flight was abandoned.
    @inline(never)
    func beginKeeping() throws(CancellationError) {
        let isAbandoned = self.state.withLock { state in
            state.isKeeping = !state.isAbandoned
            return state.isAbandoned
        }
        if isAbandoned { throw CancellationError() }
    }

    // MARK: Updates

    /// Adds an observer, which receives the latest update at once and every later one.
    ///
    /// The latest update may arrive after one that follows it.
    func add(_ observer: Observer, for waiter: FlightTable.ID) {
        let latest = self.state.withLock { state -> LoadUpdate? in
            state.observers[waiter] = observer
            if state.hasShownBytes { state.latecomers.insert(waiter) }
            return state.latest
        }
        if let latest { observer.see(latest) }
    }

    func removeObserver(of waiter: FlightTable.ID) {
        self.state.withLock { state in
            state.observers[waiter] = nil
            state.latecomers.remove(waiter)
        }
    }

    /// Sends an update to the observers.
    func report(_ update: LoadUpdate) {
        let observers = self.state.withLock { state -> [Observer] in
            guard case .bytes = update else {
                state.latest = update
                return Array(state.observers.values)
            }
            state.hasShownBytes = true
            return state.observers.filter { !state.latecomers.contains($0.key) }.map(\.value)
        }
        for observer in observers { observer.see(update) }
    }
}
