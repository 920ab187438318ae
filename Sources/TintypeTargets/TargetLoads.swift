// SPDX-License-Identifier: Apache-2.0

public import Tintype
import TintypeConcurrency

/// The loads into one target: at most one for each key.
///
/// The target holds this object, and loads hold neither of them, so the loads end with the target.
public final class TargetLoads: Sendable {
    /// The number of a load.
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

    /// Creates the loads of a target, which stores them.
    ///
    /// ```swift
    /// actor Frame: ImageTarget {
    ///     nonisolated let imageLoads = TargetLoads()
    ///
    ///     func setPlaceholder(_ placeholder: Image?, for key: TargetKey) {}
    ///     func setImage(_ image: TargetImage, for key: TargetKey) {}
    /// }
    /// ```
    public init() {}

    deinit {
        self.cancelAll()
    }

    /// The number of loads under way.
    public var count: Int { self.state.withLock { $0.entries.count } }

    /// Cancels the load of a key, if there is one.
    ///
    /// The target shows nothing of it afterwards, except in a call under way.
    ///
    /// ```swift
    /// frame.imageLoads.cancel("cover")
    /// ```
    public func cancel(_ key: TargetKey) {
        let entry = self.state.withLock { $0.entries.removeValue(forKey: key) }
        entry?.task.cancel()
    }

    /// Cancels all loads.
    ///
    /// ```swift
    /// frame.imageLoads.cancelAll()
    /// ```
    public func cancelAll() {
        let entries = self.state.withLock { state in
            defer { state.entries = [:] }
            return Array(state.entries.values)
        }
        for entry in entries { entry.task.cancel() }
    }

    /// Begins a load that replaces the one of its key.
    func begin(_ key: TargetKey, _ work: @escaping @Sendable (ID) async throws -> ImageResponse) -> TargetLoad {
        let (entry, previous) = self.state.withLock { state in
            state.lastID += 1
            let id = state.lastID
            // The task cannot end its entry before it is there: both need the lock.
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

    /// Returns whether a load is the current one of its key.
    func isCurrent(_ id: ID, _ key: TargetKey) -> Bool {
        self.state.withLock { $0.entries[key]?.id == id }
    }

    /// Cancels a load, unless it is over or another one has replaced it.
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

/// A load into a target.
///
/// The load goes on if this value goes away.
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

    /// The response, as soon as the target shows its image.
    ///
    /// Cancelling the waiting task cancels the load.
    ///
    /// - Throws: `LoadError`; `CancellationError` if the load was cancelled, another one replaced it, or the target
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

    /// Cancels the load, unless it is over.
    ///
    /// The target keeps its current image.
    ///
    /// ```swift
    /// let load = loader.load(request, into: frame)
    /// load.cancel()
    /// ```
    public func cancel() {
        self.loads?.cancel(self.id, self.key)
        // A load that lost its place may still wait for its target.
        self.task.cancel()
    }
}
