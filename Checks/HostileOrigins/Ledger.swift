// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype
import TintypeConcurrency

/// The traffic that runs during a healthy load.
enum Phase: Sendable {
    case calm
    case attack
    /// The pause between the two. Loads in this phase count for neither.
    case between
}

/// A load from the ordinary origin, and where its time went.
///
/// It is small, because a run has tens of thousands of them and measures the heap of its own process.
struct HealthyLoad: Sendable {
    /// The names of ``parts``; the rest of a load are hops between threads, and its start.
    static let partNames = [
        "queue", "connect", "first byte", "transfer", "disk", "gate", "lane", "decode", "transform", "call",
    ]

    let duration: Duration
    /// The times of the parts, in milliseconds.
    let parts: InlineArray<10, Float>

    init(_ metrics: LoadMetrics, duration: Duration) {
        let transfer = metrics.transfer
        let parts = [
            metrics.queue, transfer?.connect ?? .zero, transfer?.firstByte ?? .zero, transfer?.total ?? .zero,
            metrics.disk, metrics.gate, metrics.lane, metrics.decode, metrics.transform, metrics.total,
        ]
        self.duration = duration
        self.parts = InlineArray { Float(parts[$0] / .milliseconds(1)) }
    }
}

/// The observations of the run.
final class Ledger: Sendable {
    private struct State {
        var calm: [HealthyLoad] = []
        var attack: [HealthyLoad] = []
        var faults: [String: Int] = [:]
        var hostileLoads = 0
        var honestImages = 0
        var honestErrors = 0
    }

    private let state = Locked(State())

    func add(_ load: HealthyLoad, _ phase: Phase) {
        self.state.withLock { state in
            switch phase {
            case .calm: state.calm.append(load)
            case .attack: state.attack.append(load)
            case .between: break
            }
        }
    }

    /// Records a broken requirement, in a sentence.
    func add(fault: String) {
        self.state.withLock { $0.faults[fault, default: 0] += 1 }
    }

    func addHostileLoad() {
        self.state.withLock { $0.hostileLoads += 1 }
    }

    /// Records an honest request to a hostile origin.
    func addHonest(wasServed: Bool) {
        self.state.withLock { state in
            if wasServed { state.honestImages += 1 } else { state.honestErrors += 1 }
        }
    }

    var faults: [String: Int] { self.state.withLock { $0.faults } }
    var hostileLoads: Int { self.state.withLock { $0.hostileLoads } }
    var honest: (images: Int, errors: Int) { self.state.withLock { ($0.honestImages, $0.honestErrors) } }

    /// The healthy loads, the fastest first.
    var healthy: (calm: [HealthyLoad], attack: [HealthyLoad]) {
        let (calm, attack) = self.state.withLock { ($0.calm, $0.attack) }
        return (calm.sorted { $0.duration < $1.duration }, attack.sorted { $0.duration < $1.duration })
    }
}
