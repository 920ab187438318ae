// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// One decode of ``JPEGBands`` on several lanes.
///
/// The first lane finds the bands, and lends the memory of the image while it decodes them. Other lanes wait for that
/// memory, then decode bands as well. At the end the first lane waits for the others, at most as long as one band
/// takes.
final class JPEGParallelDecode: Sendable {
    /// The longest sleep in nanoseconds of a waiting lane, before it checks whether other work wants it.
    private static let longestSleep = 2_000_000

    /// Sendable although unchecked: each band has rows of its own, and one lane decodes it.
    private struct Work: @unchecked Sendable {
        let bands: JPEGBands
        let memory: UnsafeMutableRawBufferPointer
    }

    private enum Step {
        case wait
        case decode(Work)
        case end
    }

    private struct State {
        /// The bands, while they are being decoded.
        var work: Work?
        /// The number of lanes that decode bands in addition to the first one.
        var helperCount = 0
        var hasEnded = false
        /// The first error of any lane.
        var error: (any Error)?
    }

    private let state = Locked(State())
    private let helperCount: Int
    /// Wakes helping lanes when bands are available, or the decode has ended.
    private let changed = Signal()
    /// Wakes the first lane when another lane has left.
    private let left = Signal()

    /// Creates a decode.
    ///
    /// - Parameter helperCount: The most lanes that may help.
    init(helperCount: Int) {
        self.helperCount = helperCount
    }

    /// Decodes all bands to `memory`, together with helping lanes.
    ///
    /// - Throws: The first error of a lane: `CodingError`, `CancellationError`.
    func decode(_ bands: JPEGBands, into memory: UnsafeMutableRawBufferPointer) throws {
        self.state.withLock { $0.work = Work(bands: bands, memory: memory) }
        self.wakeHelpers()
        do {
            try bands.decode(into: memory, isFirst: true, until: { self.hasFailed })
        } catch {
            self.fail(error)
        }
        self.close()
        if let error = self.state.withLock({ $0.error }) { throw error }
    }

    /// Ends the decode: after it returns, no lane uses the memory any more.
    func close() {
        while true {
            let isHelped = self.state.withLock { state in
                state.hasEnded = true
                state.work = nil
                return state.helperCount > 0
            }
            self.wakeHelpers()
            guard isHelped else { return }
            self.left.wait()
        }
    }

    /// Decodes bands until no band is left, or other work wants the lane.
    func help(until isWanted: () -> Bool) {
        while !isWanted(), !Task.isCancelled {
            let step = self.state.withLock { state -> Step in
                if state.hasEnded { return .end }
                guard let work = state.work else { return .wait }
                state.helperCount += 1
                return .decode(work)
            }
            switch step {
            case .wait: self.changed.wait(nanoseconds: Self.longestSleep)
            case .end: return
            case .decode(let work):
                do {
                    try work.bands.decode(into: work.memory, isFirst: false) { isWanted() || self.hasFailed }
                } catch {
                    self.fail(error)
                }
                self.state.withLock { $0.helperCount -= 1 }
                self.left.send()
                return
            }
        }
    }

    private var hasFailed: Bool { self.state.withLock { $0.error != nil } }

    private func fail(_ error: any Error) {
        self.state.withLock { $0.error = $0.error ?? error }
    }

    private func wakeHelpers() {
        for _ in 0..<self.helperCount { self.changed.send() }
    }
}
