@_exported public import TintypeErrors
import TintypeImage

/// Why an image could not be transformed.
public struct TransformError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in a full sentence.
    public let message: String

    /// Creates an error.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// A parameter makes no sense.
    static func invalidParameter(_ message: String) -> TransformError {
        TransformError(code: .invalidParameter, message: message)
    }

    /// A size can't be made.
    static func invalidSize(_ message: String) -> TransformError {
        TransformError(code: .invalidSize, message: message)
    }

    /// Refuses a number that is not in the range of a parameter.
    ///
    /// - Parameters:
    ///   - value: The number; `nan` is in no range.
    ///   - range: The numbers that make sense.
    ///   - name: What it is, as a sentence begins, such as "A blur's sigma".
    /// - Throws: ``Code/invalidParameter``.
    static func check<Value: Comparable>(
        _ value: Value,
        in range: ClosedRange<Value>,
        _ name: String
    ) throws(TransformError) {
        guard !range.contains(value) else { return }
        throw .invalidParameter(
            "\(name) can't be \(value); choose a number from \(range.lowerBound) to \(range.upperBound)."
        )
    }
}

extension TintypeErrorCode {
    /// A parameter makes no sense, or not for this image.
    public static let invalidParameter = TintypeErrorCode("invalidParameter")
    /// The library that does the work refused it.
    public static let failed = TintypeErrorCode("failed")
}

extension PixelLayout {
    /// The layout of a result.
    ///
    /// - Throws: `TransformError.Code.invalidSize` where there is no such image.
    static func result(_ format: PixelFormat, width: Int, height: Int) throws(TransformError) -> PixelLayout {
        do {
            return try PixelLayout(format: format, width: width, height: height)
        } catch {
            throw .invalidSize(error.message)
        }
    }
}
