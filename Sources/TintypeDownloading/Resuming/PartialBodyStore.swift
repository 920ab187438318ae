// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeConcurrency

/// Keeps the first bytes of bodies whose transfers broke off, in files that survive the process.
///
/// Files are written aside and then renamed, and carry a checksum: what a crash leaves behind is not found, or
/// found damaged and removed. Blocking work runs on a thread of its own.
actor PartialBodyStore {
    private struct State {
        /// The bodies whose files are not written yet; `nil` stands for a file that is not removed yet.
        var pending: [PartialBodyKey: PartialBody?] = [:]
        var isWriting = false
        /// The names of the files, or `nil` before the folder was read.
        var names: Set<String>?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let folder: PartialBodyFolder
    private nonisolated let maximumBytes: Int
    private nonisolated let state = Locked(State())
    private nonisolated let executor = ThreadExecutor(name: "tintype-parts")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    init(_ configuration: DownloadActor.PartialBodies) {
        self.folder = PartialBodyFolder(configuration)
        self.maximumBytes = configuration.maximumBytes
    }

    deinit {
        self.executor.shutdown()
    }

    /// Returns false if the store certainly has no body for `key`.
    nonisolated func mayHave(_ key: PartialBodyKey) -> Bool {
        self.state.withLock { $0.pending[key].map { $0 != nil } ?? $0.names?.contains(key.name) ?? true }
    }

    /// Whether nothing is kept, as far as is known; for tests.
    nonisolated var isEmpty: Bool { self.state.withLock { $0.pending.isEmpty && $0.names?.isEmpty ?? false } }

    /// The first bytes of a body, if they are here and whole.
    func body(for key: PartialBodyKey) -> PartialBody? {
        if let pending = self.state.withLock({ $0.pending[key] }) { return pending }
        self.readNames()
        guard self.state.withLock({ $0.names?.contains(key.name) ?? false }) else { return nil }
        guard let file = self.folder.read(key.name), let body = PartialBodyFile.decode(file, key: key) else {
            self.removeFile(key.name)
            return nil
        }
        return body
    }

    /// Keeps the first bytes of a body; they can be asked for at once, and are written soon.
    nonisolated func insert(_ body: PartialBody, for key: PartialBodyKey) {
        self.write { state in
            let pendingBytes = state.pending.values.reduce(body.bytes.count) { $0 + ($1?.bytes.count ?? 0) }
            if pendingBytes <= self.maximumBytes { state.pending[key] = body }
        }
    }

    /// Forgets a body, because it is complete or of no use; removes its file soon.
    nonisolated func remove(_ key: PartialBodyKey) {
        self.write { $0.pending[key] = .some(nil) }
    }

    private nonisolated func write(_ change: (inout State) -> Void) {
        let mustStart = self.state.withLock { state -> Bool in
            change(&state)
            guard !state.isWriting, !state.pending.isEmpty else { return false }
            state.isWriting = true
            return true
        }
        // Ends by itself when nothing is pending; `flush` waits for it.
        if mustStart { Task { await self.writePending() } }
    }

    /// Returns once everything is written.
    nonisolated func flush() async {
        await withCheckedContinuation { continuation in
            let isDone = self.state.withLock { state -> Bool in
                guard state.isWriting else { return true }
                state.waiters.append(continuation)
                return false
            }
            if isDone { continuation.resume() }
        }
    }

    /// Ends the thread, once everything is written.
    nonisolated func retire() async {
        await self.flush()
        if self.executor.isStarted { await self.finishWork() }
        self.executor.retire()
    }

    private func finishWork() {}

    private func writePending() {
        self.readNames()
        while let (key, body) = self.nextPending() {
            let names = body.map { self.folder.write(PartialBodyFile.encode($0, key: key), to: key.name) }
            if names == nil { self.removeFile(key.name) }
            self.state.withLock { state in
                if let names { state.names = names }
                // A newer change may have come meanwhile.
                if state.pending[key] == .some(body) { state.pending[key] = nil }
            }
        }
    }

    private func nextPending() -> (PartialBodyKey, PartialBody?)? {
        let (next, waiters) = self.state.withLock { state in
            let next = state.pending.first
            guard next == nil else { return (next, [CheckedContinuation<Void, Never>]()) }
            state.isWriting = false
            defer { state.waiters = [] }
            return (nil, state.waiters)
        }
        for waiter in waiters { waiter.resume() }
        return next.map { ($0.key, $0.value) }
    }

    private func readNames() {
        guard self.state.withLock({ $0.names == nil }) else { return }
        let names = self.folder.clean()
        self.state.withLock { $0.names = names }
    }

    private func removeFile(_ name: String) {
        self.folder.remove(name)
        _ = self.state.withLock { $0.names?.remove(name) }
    }
}
