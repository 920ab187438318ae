// SPDX-License-Identifier: Apache-2.0

public import TintypeImage

/// Counts the work of one decode, and ends the decode when it exceeds its budget or its task is cancelled.
///
/// Encodes to GIF count their work too, without a budget, and encodes to PNG check for cancellation with it.
///
/// The unit is the work for one pixel of a plain image, about five nanoseconds of a server's core. Coders count work
/// just before they do it, in steps of at most ``unitsBetweenLooks``: a row, a strip of rows, a frame. So a cancelled
/// decode ends within a few milliseconds, however few bytes its pixels come from.
///
/// Use an instance on one thread at a time.
public final class DecodeWork {
    /// The work between two checks for cancellation, and the most to count in one step: about five milliseconds.
    public static let unitsBetweenLooks = 1 << 20
    /// The work for each encoded byte.
    ///
    /// The time of most decodes depends on the bytes, because detail takes bytes.
    public static let unitsPerByte = 5

    /// Receives the work so far at each check, and the total at the end.
    ///
    /// For tests, which count work instead of measuring time.
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

    /// The most work that the decode may do.
    public let budget: Int
    /// The work counted so far.
    public private(set) var spent = 0

    /// The other limits of the decode.
    let limits: DecodingLimits
    private let format: ImageFormat?
    private let observer: Observer?
    /// The next check for cancellation is due when ``spent`` exceeds this number.
    private var looksAfter: Int

    /// Creates a counter with the budget of `limits`.
    ///
    /// ```swift
    /// let work = DecodeWork(DecodingLimits(maximumWork: 100_000_000), format: .png)
    /// ```
    ///
    /// - Parameters:
    ///   - limits: The limits, whose `maximumWork` is the budget.
    ///   - format: The format that errors name.
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

    /// The work that the decode may still do.
    public var left: Int { self.budget - min(self.spent, self.budget) }

    /// Returns the number of rows of `width` pixels to handle in one step, at least one.
    ///
    /// ```swift
    /// let rowCount = DecodeWork.rowsAtOnce(ofWidth: image.width)
    /// ```
    public static func rowsAtOnce(ofWidth width: Int) -> Int {
        max(1, Self.unitsBetweenLooks / max(1, width))
    }

    /// Counts work that is about to be done.
    ///
    /// ```swift
    /// let work = DecodeWork(DecodingLimits())
    /// try work.count(image.width * image.height)
    /// ```
    ///
    /// - Throws: `CodingError.Code.tooMuchWork` if it exceeds the budget, `CancellationError`.
    public func count(_ units: Int) throws {
        self.spent = self.spent.saturatingAdded(to: units)
        if self.spent > self.looksAfter { try self.look() }
    }

    /// Counts encoded bytes that are about to be read.
    ///
    /// ```swift
    /// let work = DecodeWork(DecodingLimits())
    /// try work.count(bytes: data.count)
    /// ```
    ///
    /// - Throws: `CodingError.Code.tooMuchWork` if they exceed the budget, `CancellationError`.
    public func count(bytes: Int) throws {
        try self.count(bytes.saturatingMultiplied(by: Self.unitsPerByte))
    }

    /// Refuses work that is certain to come and exceeds the rest of the budget.
    ///
    /// Counts nothing.
    ///
    /// ```swift
    /// let work = DecodeWork(DecodingLimits())
    /// try work.require(image.width * image.height)
    /// ```
    ///
    /// - Throws: `CodingError.Code.tooMuchWork`.
    public func require(_ units: Int) throws(CodingError) {
        guard units <= self.left else { throw self.error(needing: self.spent.saturatingAdded(to: units)) }
    }

    /// Checks for cancellation and the budget now.
    func look() throws {
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

/// Counts work that a C library reports to a callback, and keeps the error until the library returns.
///
/// The callback cannot throw.
final class ReportedWork {
    let work: DecodeWork
    private let unitsPerReport: Int
    /// The error that made ``count(_:)`` return `false`.
    private(set) var error: (any Error)?

    init(_ work: DecodeWork, unitsPerReport: Int = 1) {
        self.work = work
        self.unitsPerReport = unitsPerReport
    }

    /// Counts reports of the library.
    ///
    /// Returns `false` if the library must stop.
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
    /// Zeroes the memory, counting a quarter of a pixel's work for each four bytes.
    func clear(_ work: DecodeWork) throws {
        let step = 16 * DecodeWork.unitsBetweenLooks
        for start in stride(from: 0, to: self.count, by: step) {
            let part = UnsafeMutableRawBufferPointer(rebasing: self[start..<Swift.min(start + step, self.count)])
            try work.count(part.count / 16)
            part.initializeMemory(as: UInt8.self, repeating: 0)
        }
    }
}
