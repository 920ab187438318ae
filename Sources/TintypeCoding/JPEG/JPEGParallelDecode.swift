import TintypeConcurrency

/// One decode of ``JPEGBands`` on several lanes.
///
/// The lane that the decode belongs to finds the bands, and lends the memory of the image while it decodes them. Other lanes wait for
/// that, and take bands as well. The first lane waits for the bands of the others, at most for the time of one band.
final class JPEGParallelDecode: Sendable {
    /// The longest sleep of a lane that waits for the bands, before it checks whether other work wants it.
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
        /// The bands, while they are decoded.
        var work: Work?
        /// The lanes that decode bands in addition to the first one.
        var helperCount = 0
        var hasEnded = false
        /// The first error of any lane.
        var error: (any Error)?
    }

    private let state = Locked(State())
    private let helperCount: Int
    /// Tells the lanes that help that there are bands, or that the decode has ended.
    private let changed = Signal()
    /// Tells the first lane that another one has left.
    private let left = Signal()

    /// - Parameter helperCount: The lanes that may help, at most.
    init(helperCount: Int) {
        self.helperCount = helperCount
    }

    /// Decodes all bands to `memory`, with the lanes that help.
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

    /// Ends the decode: when it returns, no lane uses the memory, and none will.
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

    /// Decodes bands until none is left, or other work wants the lane.
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
