// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
import TintypeImage

/// Inflates the scanlines of a large image on an idle lane, ahead of the lane that converts them to pixels.
///
/// Strips of whole scanlines pass from one lane to the other, and are reused. If no strip is ready and no lane is
/// inflating, the converting lane inflates one itself. So it does not depend on a helper. It waits for a helper at most
/// as long as one strip takes, which the work limit bounds.
final class PNGAhead: Sendable {
    /// The most strips in memory.
    private static let stripCount = 4
    /// The bytes of a strip, or of a scanline if that is larger.
    private static let stripByteCount = 128 << 10
    /// The longest sleep in nanoseconds of a helping lane, before it checks whether other work wants it.
    private static let longestSleep = 2_000_000

    private struct State {
        /// The inflation; `nil` before the reading begins and after it ends.
        var inflation: PNGInflation?
        var isInflating = false
        /// Whether no more strips will be inflated.
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
    /// Wakes the converting lane when a strip is filled, or no lane is inflating.
    private let filled = Signal()
    /// Wakes the helping lane when there is room.
    private let room = Signal()

    /// Creates the strips' bookkeeping.
    ///
    /// - Parameter lineByteCount: The bytes of a filtered scanline.
    init(lineByteCount: Int) {
        self.capacity = max(1, Self.stripByteCount / lineByteCount) * lineByteCount
        self.byteCount = Self.stripCount * self.capacity
    }

    // MARK: The lane that makes pixels

    /// Begins to inflate; the input of `inflation` must stay valid until ``close()``.
    func open(_ inflation: PNGInflation) {
        self.state.withLock { $0.inflation = inflation }
        self.room.send()
    }

    /// Returns the next strip, and reuses `last`, the previous one.
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

    /// Reads to the end of the file, after the last strip.
    func finish() throws {
        try self.state.withLock { $0.inflation }?.finish()
    }

    /// Ends the inflation, also early: after it returns, no lane inflates any more.
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

    /// Inflates until nothing is left, or other work wants the lane.
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

/// Filtered scanlines, and the error that followed them.
///
/// Sendable although unchecked: one lane at a time owns it, and receives it under a lock.
final class PNGStrip: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    fileprivate(set) var count = 0
    /// The work of filling the strip.
    fileprivate(set) var units = 0
    /// The error that ended the inflation after this strip.
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
/// Sendable although unchecked: one lane at a time uses it, which ``PNGAhead`` ensures.
final class PNGInflation: @unchecked Sendable {
    private let inflater: PNGInflater
    private let work: DecodeWork
    private var data: PNGPixelData
    private var piece = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The number of filtered bytes that are not inflated yet.
    private var missing: Int
    /// Whether all bytes were inflated, or an error occurred.
    private(set) var hasEnded = false

    /// Creates an inflation.
    ///
    /// - Parameters:
    ///   - data: The compressed bytes; its own counter counts the work of finding them.
    ///   - byteCount: The bytes of all filtered scanlines.
    ///   - work: The counter of the work of inflating.
    /// - Throws: `CodingError` if memory runs out.
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

    /// Verifies the checksums behind the last scanline, and the end of the file.
    fileprivate func finish() throws {
        var hasEnded = try self.inflater.hasEnded(&self.piece, work: self.work)
        while var piece = try self.data.next() {
            if !hasEnded { hasEnded = try self.inflater.hasEnded(&piece, work: self.work) }
        }
        guard hasEnded else { throw CodingError.truncated(.png) }
        try self.data.checkEnd()
    }
}
