// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeConcurrency

/// The traffic that runs during a healthy load.
enum Phase: Sendable {
    case calm
    case attack
    /// Between the two. Loads in this phase count for neither.
    case between
}

/// The observations of the run.
final class Ledger: Sendable {
    private struct State {
        var calm: [Duration] = []
        var attack: [Duration] = []
        var faults: [String: Int] = [:]
        var hostileLoads = 0
        var honestImages = 0
        var honestErrors = 0
    }

    private let state = Locked(State())

    func add(healthy time: Duration, _ phase: Phase) {
        self.state.withLock { state in
            switch phase {
            case .calm: state.calm.append(time)
            case .attack: state.attack.append(time)
            case .between: break
            }
        }
    }

    /// A promise that was broken, in a sentence.
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

    /// The healthy loads' times, sorted.
    var healthy: (calm: [Duration], attack: [Duration]) {
        self.state.withLock { ($0.calm.sorted(), $0.attack.sorted()) }
    }
}
