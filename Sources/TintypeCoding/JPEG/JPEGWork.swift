import CJPEG
import TintypeImage

/// Counts for libjpeg, which can't throw: what ended the decode is kept until the library has returned.
final class JPEGWork {
    /// What things cost.
    ///
    /// A scan goes over all coefficients, but leaves most of them alone: a quarter of a pixel each; arithmetic coding
    /// decides on each of them. A restart looks for a marker and begins the tables anew.
    static let prices = cjpeg_prices(
        byte: CInt(DecodeWork.unitsPerByte),
        block: CInt(JPEGWork.unitsPerBlock),
        arithmetic_block: CInt(JPEGWork.unitsPerArithmeticBlock),
        restart: CInt(JPEGWork.unitsPerRestart)
    )
    static let unitsPerBlock = 16
    static let unitsPerArithmeticBlock = 64
    static let unitsPerRestart = 16

    private let work: DecodeWork
    /// Why the library was stopped.
    private(set) var error: (any Error)?

    init(_ work: DecodeWork) {
        self.work = work
    }

    /// Counts work that is about to be done outside the library.
    func count(_ units: Int) throws {
        try self.work.count(units)
    }

    /// What the library calls, with the object as its context.
    static let count: cjpeg_count = { context, units in
        let work = Unmanaged<JPEGWork>.fromOpaque(context).takeUnretainedValue()
        do {
            try work.work.count(Int(units))
            return true
        } catch {
            work.error = error
            return false
        }
    }
}
