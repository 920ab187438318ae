public import Tintype
import TintypeConcurrency

/// The loads into one target: at most one for each key, until the target goes away.
///
/// The target holds it, and loads hold neither: what is kept for a target goes away with the target.
public final class TargetLoads: Sendable {
    /// Tells the loads into a target apart.
    typealias ID = UInt64

    private struct Entry {
        let id: ID
        let task: Task<ImageResponse, any Error>
    }

    private struct State {
        var entries: [TargetKey: Entry] = [:]
        var lastID: ID = 0
    }

    private let state = Locked(State())

    /// Makes what a target stores.
    public init() {}

    deinit {
        self.cancelAll()
    }

    /// The number of loads that are under way.
    public var count: Int { self.state.withLock { $0.entries.count } }

    /// Ends the load of a key, if there is one; nothing of it is shown after this returns, unless it is being shown now.
    public func cancel(_ key: TargetKey) {
        let entry = self.state.withLock { $0.entries.removeValue(forKey: key) }
        entry?.task.cancel()
    }

    /// Ends all loads.
    public func cancelAll() {
        let entries = self.state.withLock { state in
            defer { state.entries = [:] }
            return Array(state.entries.values)
        }
        for entry in entries { entry.task.cancel() }
    }

    /// Begins a load in place of the one that its key has.
    func begin(_ key: TargetKey, _ work: @escaping @Sendable (ID) async throws -> ImageResponse) -> TargetLoad {
        let (entry, previous) = self.state.withLock { state in
            state.lastID += 1
            let id = state.lastID
            // The task can't end its entry before it is there: both need the lock.
            let task = Task(name: "target") { @concurrent [weak self] in
                defer { self?.remove(id, key) }
                return try await work(id)
            }
            let entry = Entry(id: id, task: task)
            return (entry, state.entries.updateValue(entry, forKey: key))
        }
        previous?.task.cancel()
        return TargetLoad(loads: self, key: key, id: entry.id, task: entry.task)
    }

    /// Whether the load is the one of its key.
    func isCurrent(_ id: ID, _ key: TargetKey) -> Bool {
        self.state.withLock { $0.entries[key]?.id == id }
    }

    /// Ends the load, unless it is over or another one took its place.
    func cancel(_ id: ID, _ key: TargetKey) {
        self.remove(id, key)?.task.cancel()
    }

    @discardableResult
    private func remove(_ id: ID, _ key: TargetKey) -> Entry? {
        self.state.withLock { state in
            guard let entry = state.entries[key], entry.id == id else { return nil }
            state.entries[key] = nil
            return entry
        }
    }
}

/// One load into a target.
///
/// The load goes on without it.
public struct TargetLoad: Sendable {
    private weak let loads: TargetLoads?
    private let key: TargetKey
    private let id: TargetLoads.ID
    private let task: Task<ImageResponse, any Error>

    init(loads: TargetLoads, key: TargetKey, id: TargetLoads.ID, task: Task<ImageResponse, any Error>) {
        self.loads = loads
        self.key = key
        self.id = id
        self.task = task
    }

    /// What was loaded, once the target shows it; cancelling the task that waits ends the load.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the load was cancelled, another one took its place, or the target
    ///   went away.
    public var response: ImageResponse {
        get async throws {
            try await withTaskCancellationHandler {
                try await self.task.value
            } onCancel: {
                self.cancel()
            }
        }
    }

    /// Ends the load, unless it is over; the target stays as it is.
    public func cancel() {
        self.loads?.cancel(self.id, self.key)
        // A load that lost its place may still wait for its target.
        self.task.cancel()
    }
}
