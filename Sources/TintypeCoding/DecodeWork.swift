public import TintypeImage

/// Counts the work of one decode while it is done: ends the decode when its budget is used up, and when its task is
/// cancelled.
///
/// Encodes to GIF count as well, without a budget.
///
/// The unit is the work of one pixel of a plain image, about five nanoseconds of a server's core. Coders
/// count what they are about to do, in steps of at most ``unitsBetweenLooks``: a row, a strip of rows, a frame. So a
/// cancelled decode ends within a few milliseconds, however few bytes its pixels come from.
///
/// Used on one thread at a time.
public final class DecodeWork {
    /// Work between two looks at the cancellation, and the most that is counted in one step: about five milliseconds.
    public static let unitsBetweenLooks = 1 << 20
    /// The work of taking in an encoded byte: pixels that differ take bytes, and most of the time goes into those.
    public static let unitsPerByte = 5

    /// What is told the work so far at each look, and all of it at the end; for tests, which count work instead of taking
    /// times.
    package final class Observer: Sendable {
        fileprivate let look: @Sendable (_ spent: Int) -> Void
        fileprivate let didEnd: @Sendable (_ spent: Int) -> Void

        package init(
            look: @escaping @Sendable (_ spent: Int) -> Void = { _ in },
            didEnd: @escaping @Sendable (_ spent: Int) -> Void = { _ in }
        ) {
            self.look = look
            self.didEnd = didEnd
        }
    }

    /// The observer of decodes that the current task begins.
    @TaskLocal package static var observer: Observer?

    /// The work that may be done.
    public let budget: Int
    /// The work that was counted.
    public private(set) var spent = 0

    /// What else the decode must keep to.
    let limits: DecodingLimits
    private let format: ImageFormat?
    private let observer: Observer?
    /// The next look is due when more than this was counted.
    private var looksAfter: Int

    /// Begins to count against the budget of `limits`.
    ///
    /// - Parameters:
    ///   - limits: Their `maximumWork` is the budget.
    ///   - format: What errors name.
    public init(_ limits: DecodingLimits, format: ImageFormat? = nil) {
        self.budget = max(0, limits.maximumWork)
        self.limits = limits
        self.format = format
        self.observer = Self.observer
        self.looksAfter = min(self.budget, Self.unitsBetweenLooks)
    }

    deinit {
        self.observer?.didEnd(self.spent)
    }

    /// The work that may still be done.
    public var left: Int { self.budget - min(self.spent, self.budget) }

    /// The rows of `width` pixels that may be worked on in one step: at least one.
    public static func rowsAtOnce(ofWidth width: Int) -> Int {
        max(1, Self.unitsBetweenLooks / max(1, width))
    }

    /// Counts work that is about to be done.
    ///
    /// - Throws: `CodingError.Code.tooMuchWork` when it is more than is left; `CancellationError`.
    public func count(_ units: Int) throws {
        self.spent = self.spent.saturatingAdded(to: units)
        if self.spent > self.looksAfter { try self.look() }
    }

    /// Counts encoded bytes that are about to be taken in.
    ///
    /// - Throws: `CodingError.Code.tooMuchWork` when they are more than is left; `CancellationError`.
    public func count(bytes: Int) throws {
        try self.count(bytes.saturatingMultiplied(by: Self.unitsPerByte))
    }

    /// Refuses work that is known to come and is more than is left; counts nothing.
    ///
    /// - Throws: `CodingError.Code.tooMuchWork`.
    public func require(_ units: Int) throws(CodingError) {
        guard units <= self.left else { throw self.error(needing: self.spent.saturatingAdded(to: units)) }
    }

    private func look() throws {
        self.observer?.look(self.spent)
        try Task.checkCancellation()
        guard self.spent <= self.budget else { throw self.error(needing: self.spent) }
        self.looksAfter = min(self.budget, self.spent.saturatingAdded(to: Self.unitsBetweenLooks))
    }

    private func error(needing units: Int) -> CodingError {
        let what = "Decoding takes the work of \(units) pixels or more and the limit is \(self.budget)"
        return .overLimit(.tooMuchWork, self.format, what)
    }
}

/// Work that a C library reports to a callback, which can't throw: what ends it is kept until the library returns.
final class ReportedWork {
    let work: DecodeWork
    private let unitsPerReport: Int
    /// Why the library was told to end.
    private(set) var error: (any Error)?

    init(_ work: DecodeWork, unitsPerReport: Int = 1) {
        self.work = work
        self.unitsPerReport = unitsPerReport
    }

    /// Counts; false where the library is to end.
    func count(_ reports: Int = 1) -> Bool {
        guard self.error == nil else { return false }
        do {
            try self.work.count(reports * self.unitsPerReport)
            return true
        } catch {
            self.error = error
            return false
        }
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Zeroes the memory, in steps that are counted as a quarter of a pixel's work for each four bytes.
    func clear(_ work: DecodeWork) throws {
        let step = 16 * DecodeWork.unitsBetweenLooks
        for start in stride(from: 0, to: self.count, by: step) {
            let part = UnsafeMutableRawBufferPointer(rebasing: self[start..<Swift.min(start + step, self.count)])
            try work.count(part.count / 16)
            part.initializeMemory(as: UInt8.self, repeating: 0)
        }
    }
}
