import TintypeConcurrency
import TintypeImage

/// Inflates the scanlines of a large image on a lane that has nothing to do, ahead of the lane that makes pixels of them.
///
/// Strips of whole scanlines go from one to the other, and come back to be filled again. Where none is ready and no lane
/// is inflating, the lane that uses them inflates one itself: it needs no helper, and waits for one no longer than a strip
/// takes, which the work that the image may cost bounds.
final class PNGAhead: Sendable {
    /// How many strips there are at most.
    private static let stripCount = 4
    /// The bytes of a strip, or of a scanline where that has more.
    private static let stripByteCount = 128 << 10
    /// How long a lane that helps sleeps at most before it looks whether it is wanted.
    private static let longestSleep = 2_000_000

    private struct State {
        /// What inflates; `nil` while a lane does, and where the image is not being read.
        var inflation: PNGInflation?
        var isInflating = false
        /// Whether nothing more is inflated.
        var hasEnded = false
        var filled: [PNGStrip] = []
        var free: [PNGStrip] = []
        var madeCount = 0
    }

    private enum Step {
        case use(PNGStrip)
        case inflate(PNGInflation, into: PNGStrip?)
        case wait
        case end
    }

    /// The bytes of memory that the strips take.
    let byteCount: Int
    private let capacity: Int
    private let state = Locked(State())
    /// Tells the lane that uses strips that one is filled, or that no lane is inflating.
    private let filled = Signal()
    /// Tells the lane that helps that there is room.
    private let room = Signal()

    /// - Parameter lineByteCount: The bytes of a filtered scanline.
    init(lineByteCount: Int) {
        self.capacity = max(1, Self.stripByteCount / lineByteCount) * lineByteCount
        self.byteCount = Self.stripCount * self.capacity
    }

    // MARK: The lane that makes pixels

    /// Begins to inflate; what `inflation` reads must be there until ``close()``.
    func open(_ inflation: PNGInflation) {
        self.state.withLock { $0.inflation = inflation }
        self.room.send()
    }

    /// The next strip; `last`, which was given before, is used no more.
    func next(after last: PNGStrip?) throws -> PNGStrip {
        var last = last
        while true {
            let step = self.state.withLock { state -> Step in
                if let strip = last.take() { state.free.append(strip) }
                if !state.filled.isEmpty { return .use(state.filled.removeFirst()) }
                guard !state.isInflating else { return .wait }
                return self.beginInflating(&state) ?? .end
            }
            self.room.send()
            switch step {
            case .use(let strip): return strip
            case .inflate(let inflation, let strip):
                let strip = strip ?? PNGStrip(capacity: self.capacity)
                inflation.fill(strip)
                self.endInflating(inflation)
                return strip
            case .wait: self.filled.wait()
            case .end: throw CodingError.truncated(.png)
            }
        }
    }

    /// Reads on to the end of the file, once all strips were given.
    func finish() throws {
        try self.state.withLock { $0.inflation }?.finish()
    }

    /// Ends it, also early: no lane inflates any more.
    func close() {
        while true {
            let isInflating = self.state.withLock { state in
                state.hasEnded = true
                if !state.isInflating { state.inflation = nil }
                return state.isInflating
            }
            self.room.send()
            guard isInflating else { return }
            self.filled.wait()
        }
    }

    // MARK: The lane that helps

    /// Inflates until there is nothing left, or the lane is wanted for something else.
    func help(until isWanted: () -> Bool) {
        while !isWanted(), !Task.isCancelled {
            let step = self.state.withLock { state -> Step in
                if state.hasEnded { return .end }
                return self.beginInflating(&state) ?? .wait
            }
            switch step {
            case .inflate(let inflation, let strip):
                let strip = strip ?? PNGStrip(capacity: self.capacity)
                inflation.fill(strip)
                self.endInflating(inflation, strip)
                self.filled.send()
            case .wait: self.room.wait(nanoseconds: Self.longestSleep)
            case .use, .end: return
            }
        }
    }

    // MARK: Both

    private func beginInflating(_ state: inout State) -> Step? {
        guard !state.hasEnded, !state.isInflating, let inflation = state.inflation else { return nil }
        if let strip = state.free.popLast() {
            state.isInflating = true
            return .inflate(inflation, into: strip)
        }
        guard state.madeCount < Self.stripCount else { return nil }
        state.madeCount += 1
        state.isInflating = true
        return .inflate(inflation, into: nil)
    }

    private func endInflating(_ inflation: PNGInflation, _ strip: PNGStrip? = nil) {
        self.state.withLock { state in
            state.isInflating = false
            state.hasEnded = state.hasEnded || inflation.hasEnded
            if let strip { state.filled.append(strip) }
        }
    }
}

/// Filtered scanlines, and what came after them.
///
/// Sendable although unchecked: it belongs to one lane at a time, which gets it under a lock.
final class PNGStrip: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    fileprivate(set) var count = 0
    /// The work of filling it.
    fileprivate(set) var units = 0
    /// Why there is nothing behind it.
    fileprivate(set) var error: (any Error)?

    fileprivate init(capacity: Int) {
        self.memory = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        self.memory.deallocate()
    }

    var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: self.memory[..<self.count]) }
    fileprivate var free: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: self.memory[self.count...])
    }
}

/// Inflates the scanlines of an image strip by strip.
///
/// Sendable although unchecked: one lane at a time uses it, as ``PNGAhead`` says.
final class PNGInflation: @unchecked Sendable {
    private let inflater: PNGInflater
    private let work: DecodeWork
    private var data: PNGPixelData
    private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The filtered bytes that are still to be inflated.
    private var missing: Int
    /// Whether all was inflated, or an error was met.
    private(set) var hasEnded = false

    /// - Parameters:
    ///   - data: The compressed bytes; `work` counts what finding them takes.
    ///   - byteCount: The bytes of all filtered scanlines.
    ///   - work: Counts.
    /// - Throws: `CodingError` without memory.
    init(_ data: PNGPixelData, byteCount: Int, work: DecodeWork) throws(CodingError) {
        self.inflater = try PNGInflater()
        self.data = data
        self.missing = byteCount
        self.work = work
    }

    fileprivate func fill(_ strip: PNGStrip) {
        let before = self.work.spent
        strip.count = 0
        do {
            while self.missing > 0, !strip.free.isEmpty { try self.inflate(into: strip) }
        } catch {
            strip.error = error
            self.hasEnded = true
        }
        strip.units = self.work.spent - before
        if self.missing == 0 { self.hasEnded = true }
    }

    private func inflate(into strip: PNGStrip) throws {
        guard !self.inflater.isFinished else { throw CodingError.truncated(.png) }
        guard !self.piece.isEmpty || self.inflater.isAhead else {
            guard let piece = try self.data.next() else { throw CodingError.truncated(.png) }
            self.piece = piece
            return
        }
        let offered = min(self.piece.count, PNGInflater.inputByteCount)
        var step = UnsafeRawBufferPointer(rebasing: self.piece[..<offered])
        let free = UnsafeMutableRawBufferPointer(rebasing: strip.free.prefix(self.missing))
        let count = try self.inflater.inflate(&step, into: free)
        let used = offered - step.count
        self.piece = UnsafeRawBufferPointer(rebasing: self.piece[used...])
        strip.count += count
        self.missing -= count
        try self.work.count(used * DecodeWork.unitsPerByte + count / 4)
    }

    /// Looks at the checksums behind the last scanline, and for the end.
    fileprivate func finish() throws {
        var hasEnded = try self.inflater.hasEnded(&self.piece, work: self.work)
        while var piece = try self.data.next() {
            if !hasEnded { hasEnded = try self.inflater.hasEnded(&piece, work: self.work) }
        }
        guard hasEnded else { throw CodingError.truncated(.png) }
        try self.data.checkEnd()
    }
}
