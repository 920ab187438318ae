import FoundationEssentials
import TintypeCaching
import TintypeConcurrency
import TintypeDownloading
import TintypeImage
import TintypeRendering

/// What happens on the way to a picture or its bytes.
enum LoadUpdate: Sendable {
    case progress(TransferProgress)
    /// Bytes of the body, for those that make previews of them.
    case bytes(Data)
    case preview(Image)
    case cached(ImageResponse)
}

/// A request that is under way, and what brings it.
struct Fetch: Sendable {
    let request: DownloadRequest
    let fetcher: any ImageFetching
}

/// A response that a flight has fetched from its origin.
struct FetchedResponse: Sendable {
    let flight: LoadTable.ID
    let name: ResponseName
}

/// The side of a flight that is reached without a hop: its observers, what is wanted of it at the moment, and which body
/// of its source is the newest.
final class Flight: Sendable {
    /// What looks at the updates of a flight.
    enum Observer: Sendable {
        case caller(@Sendable (LoadUpdate) -> Void)
        /// A picture's flight, which shows them to its own, and previews of the bytes.
        case flight(Flight, previews: ByteMailbox?)

        func see(_ update: LoadUpdate) {
            switch (self, update) {
            case (.caller(let see), _): see(update)
            case (.flight(_, let previews), .bytes(let bytes)): previews?.put(bytes)
            case (.flight(let flight, _), _): flight.report(update)
            }
        }
    }

    private struct State {
        var demand: LoadTable.Demand
        var newestBody: UInt64?
        /// The latest response of each name that flights have fetched from the origin meanwhile, the latest last.
        var fetched: [FetchedResponse] = []
        var observers: [LoadTable.ID: Observer] = [:]
        /// Those that came when bytes had been shown already: a part of them is of no use.
        var latecomers: Set<LoadTable.ID> = []
        var hasShownBytes = false
        var hasPicture = false
        var latest: LoadUpdate?
        var fetch: Fetch?
        var isAbandoned = false
        var isKeeping = false
    }

    let id: LoadTable.ID
    /// Whether it may ask the origin at once.
    let hasTurn: Bool
    /// What it has taken so far.
    let record = LoadRecord()
    /// What has happened in it and is yet to be told.
    let activities = ActivityQueue()
    private let state: Locked<State>

    init(id: LoadTable.ID, _ briefing: LoadTable.Briefing) {
        self.id = id
        self.hasTurn = briefing.hasTurn
        self.state = Locked(State(demand: briefing.demand, newestBody: briefing.newestBody))
    }

    /// Takes note of a body of its source that is newer than those before.
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

    /// Whether what was made of `body` may be kept: no newer one is known.
    func admits(_ body: UInt64?) -> Bool {
        guard let body else { return true }
        return self.state.withLock { $0.newestBody == nil || $0.newestBody == body }
    }

    /// Takes note that the picture is there: a preview that comes now must not be kept.
    func notePicture() {
        self.state.withLock { $0.hasPicture = true }
    }

    /// Whether the picture is there.
    var hasPicture: Bool { self.state.withLock { $0.hasPicture } }

    /// What those want that wait now.
    var demand: LoadTable.Demand { self.state.withLock { $0.demand } }

    /// Takes up what is wanted now; returns what is being fetched, where that became more or less urgent.
    func change(_ demand: LoadTable.Demand) -> Fetch? {
        self.state.withLock { state in
            defer { state.demand = demand }
            return state.demand.priority == demand.priority ? nil : state.fetch
        }
    }

    /// Runs the fetch that the flight is for; it asks how urgent it is when it begins.
    func running<Result>(
        _ fetch: Fetch,
        _ run: (_ priority: @escaping @Sendable () -> DownloadPriority) async throws -> Result
    ) async rethrows -> Result {
        // In this order: a change before it is seen by the question, one after it by the change.
        self.note(fetch)
        defer { self.note(nil) }
        return try await run { self.demand.priority }
    }

    /// Stays a function of its own: inlined into an asynchronous one on both sides of a suspension, the lock is given
    /// back by the identity of the thread that took it before, and traps (Swift 6.3, optimised).
    @inline(never)
    private func note(_ fetch: Fetch?) {
        self.state.withLock { $0.fetch = fetch }
    }

    // MARK: Its end

    /// Whether nothing waits for it any more: only then is its task to end without a result.
    ///
    /// Here and below not inlined, for the reason above.
    var isAbandoned: Bool {
        @inline(never) get { self.state.withLock { $0.isAbandoned } }
    }

    /// What it ends with where its work threw `error`: only what was abandoned was cancelled.
    ///
    /// A hook or a coder of the program may throw such an error of its own, or cancel the task that it runs in; callers
    /// would take themselves to be cancelled.
    func failure(of error: any Error, _ request: ImageRequest) -> any Error {
        guard error is CancellationError, !self.isAbandoned else { return error }
        return LoadError(
            code: .refused,
            message: "A hook, a coder or the downloader gave up on \(request.displayURL) as if it had been cancelled; "
                + "ask again."
        )
    }

    /// Takes note that nothing waits any more, and says whether its turn may be another's at once: it has begun to keep
    /// nothing, and never will.
    func abandon() -> Bool {
        self.state.withLock { state in
            state.isAbandoned = true
            return !state.isKeeping
        }
    }

    /// Begins to keep what it has brought: its turn is its own until it ends.
    ///
    /// - Throws: `CancellationError` where it was abandoned.
    @inline(never)
    func beginKeeping() throws(CancellationError) {
        let isAbandoned = self.state.withLock { state in
            state.isKeeping = !state.isAbandoned
            return state.isAbandoned
        }
        if isAbandoned { throw CancellationError() }
    }

    // MARK: Updates

    /// Lets a waiter see the updates: the newest so far, and those that follow.
    ///
    /// The newest may be shown after one that follows it.
    func add(_ observer: Observer, for waiter: LoadTable.ID) {
        let latest = self.state.withLock { state -> LoadUpdate? in
            state.observers[waiter] = observer
            if state.hasShownBytes { state.latecomers.insert(waiter) }
            return state.latest
        }
        if let latest { observer.see(latest) }
    }

    func removeObserver(of waiter: LoadTable.ID) {
        self.state.withLock { state in
            state.observers[waiter] = nil
            state.latecomers.remove(waiter)
        }
    }

    /// Shows an update to those that look.
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

/// The image that a load makes of the bytes that it waits for.
struct DecodeWish: Sendable {
    let request: ImageRequest
    /// The bodies whose image the load has already: if one of them comes, it decodes nothing.
    let bodies: Set<UInt64>
}

/// The wait of one caller, or of one flight, for the result of a flight.
///
/// It ends once, with what comes first: the result, or the cancellation of the task that waits.
final class LoadWaiter: Sendable {
    private enum State {
        case pending
        case waiting(CheckedContinuation<FlightResult, any Error>)
        case ended(Result<FlightResult, any Error>)
        case over
    }

    let id: LoadTable.ID
    /// The flight, where it was under way when the wait began.
    let joinedFlight: Flight?
    /// The image that the waiter makes of the bytes that it waits for.
    let wish: DecodeWish?
    private let state = Locked(State.pending)

    init(id: LoadTable.ID, joinedFlight: Flight? = nil, wish: DecodeWish? = nil) {
        self.id = id
        self.joinedFlight = joinedFlight
        self.wish = wish
    }

    /// The result, for the one task that waits.
    ///
    /// - Throws: What the flight threw; `CancellationError` as soon as the task is cancelled.
    func result() async throws -> FlightResult {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result = self.state.withLock { state -> Result<FlightResult, any Error>? in
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

    /// Ends the wait; the first end counts.
    func end(with result: Result<FlightResult, any Error>) {
        let continuation = self.state.withLock { state -> CheckedContinuation<FlightResult, any Error>? in
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
