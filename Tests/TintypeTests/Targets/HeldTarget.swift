// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeConcurrency
import TintypeTargets
import TintypeTestSupport

/// A target that takes each step only when a test allows it.
actor HeldTarget: ImageTarget {
    /// Holds jobs until a test runs them.
    private final class HeldExecutor: SerialExecutor {
        let jobs = Locked<[UnownedJob]>([])

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            self.jobs.withLock { $0.append(job) }
        }
    }

    nonisolated let imageLoads = TargetLoads()
    private nonisolated let executor = HeldExecutor()
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }
    private nonisolated let recorded = Locked<[UInt8]>([])

    /// The gray values of all images shown so far.
    nonisolated var shown: [UInt8] { self.recorded.withLock { $0 } }

    /// The number of waiting steps.
    nonisolated var stepCount: Int { self.executor.jobs.withLock { $0.count } }

    /// Runs the first waiting step, if there is one.
    nonisolated func runStep() {
        let job = self.executor.jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        job?.runSynchronously(on: self.executor.asUnownedSerialExecutor())
    }

    func setPlaceholder(_ placeholder: Image?, for key: TargetKey) {
        if let placeholder { self.note(placeholder) }
    }

    func setImage(_ image: TargetImage, for key: TargetKey) {
        self.note(image.image)
    }

    private func note(_ image: Image) {
        let gray = UInt8(clamping: image.pixels.sample(0, 0))
        self.recorded.withLock { $0.append(gray) }
    }
}
