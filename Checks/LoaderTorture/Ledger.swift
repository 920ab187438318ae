// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Tintype
import TintypeConcurrency

/// The records of a round: how calls and loads end, and which objects must be gone after it.
final class Ledger: LoadObserver {
    private struct Watched {
        weak var object: (any AnyObject & Sendable)?
        let name: String
    }

    private struct State {
        var running: [UInt64: LoadActivity.Product] = [:]
        var ended: Set<UInt64> = []
        var begun: [LoadActivity.Product: Int] = [:]
        var faults: [String] = []
        var faultCount = 0
        var watched: [Watched] = []
        var outcomes: [String: Int] = [:]
    }

    private static let faultLimit = 40
    private static let watchLimit = 2_000

    private let state = Locked(State())
    private let isOver = Atomic<Bool>(false)
    private let calls = Atomic<Int>(0)
    private let cancellations = Atomic<Int>(0)
    let heldBytes: HeldBytes

    init(_ heldBytes: HeldBytes) {
        self.heldBytes = heldBytes
    }

    /// Whether calls may be refused and cancelled by the end of the round.
    var isEnding: Bool { self.isOver.load(ordering: .acquiring) }

    var callCount: Int { self.calls.load(ordering: .relaxed) }

    /// How often all loads were cancelled.
    var cancellationCount: Int { self.cancellations.load(ordering: .acquiring) }

    func noteCancellation() {
        self.cancellations.wrappingAdd(1, ordering: .acquiringAndReleasing)
    }

    /// How often each kind of call came to each end.
    var outcomes: [String: Int] { self.state.withLock { $0.outcomes } }

    var faults: [String] {
        self.state.withLock { state in
            let more = state.faultCount - state.faults.count
            return state.faults + (more > 0 ? ["and \(more) more"] : [])
        }
    }

    /// The objects that must be gone but still exist.
    var remains: [String] {
        var remains = self.state.withLock { state in
            Dictionary(grouping: state.watched.filter { $0.object != nil }, by: \.name).map { "\($1.count) \($0) left" }
        }
        if self.heldBytes.count != 0 { remains.append("\(self.heldBytes.count) bytes of bodies left") }
        return remains
    }

    func end() {
        self.isOver.store(true, ordering: .releasing)
    }

    func note(_ call: String, _ outcome: String) {
        self.calls.wrappingAdd(1, ordering: .relaxed)
        self.state.withLock { $0.outcomes["\(call) \(outcome)", default: 0] += 1 }
    }

    func add(fault: String) {
        self.state.withLock { state in
            state.faultCount += 1
            if state.faults.count < Self.faultLimit { state.faults.append(fault) }
        }
    }

    /// Requires that `object` is released after the round.
    func watch(_ object: any AnyObject & Sendable, _ name: String) {
        self.state.withLock { state in
            if state.watched.count < Self.watchLimit { state.watched.append(Watched(object: object, name: name)) }
        }
    }

    // MARK: Loads

    func loader(didObserve activity: LoadActivity) {
        switch activity.kind {
        case .started: self.begin(activity)
        case .finished, .failed, .refused, .cancelled: self.end(activity)
        case .joined, .hit, .downloadStarted, .downloadFinished, .decoded, .stored: break
        }
    }

    /// Compares the loader's counts with the reported events.
    func check(_ statistics: LoaderStatistics) {
        let (running, begun) = self.state.withLock { ($0.running, $0.begun) }
        for (id, product) in running { self.add(fault: "load \(id) of \(product) never ended") }
        for product in LoadActivity.Product.allCases {
            let loads = statistics.loads(of: product)
            if loads.active != 0 { self.add(fault: "\(loads.active) loads of \(product) are counted as active") }
            if loads.started != begun[product, default: 0] {
                self.add(fault: "\(loads.started) loads of \(product) counted, \(begun[product, default: 0]) told")
            }
        }
    }

    private func begin(_ activity: LoadActivity) {
        let isFirst = self.state.withLock { state in
            state.begun[activity.product, default: 0] += 1
            return !state.ended.contains(activity.loadID)
                && state.running.updateValue(activity.product, forKey: activity.loadID) == nil
        }
        if !isFirst { self.add(fault: "load \(activity.loadID) began twice") }
    }

    private func end(_ activity: LoadActivity) {
        let isRunning = self.state.withLock { state in
            state.ended.insert(activity.loadID)
            return state.running.removeValue(forKey: activity.loadID) == activity.product
        }
        if !isRunning { self.add(fault: "load \(activity.loadID) ended without running: \(activity.kind)") }
    }
}
