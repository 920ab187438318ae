// SPDX-License-Identifier: Apache-2.0

@_exported public import TintypeErrors
import TintypeImage

/// An error of a transform.
public struct TransformError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// The kind of failure.
    public let code: Code
    /// The cause and the remedy, in full sentences.
    public let message: String

    /// Creates an error.
    ///
    /// ```swift
    /// throw TransformError(code: .invalidParameter, message: "The sigma is under 0; give it a positive number.")
    /// ```
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// Creates an error for an invalid parameter.
    static func invalidParameter(_ message: String) -> TransformError {
        TransformError(code: .invalidParameter, message: message)
    }

    /// Creates an error for an impossible size.
    static func invalidSize(_ message: String) -> TransformError {
        TransformError(code: .invalidSize, message: message)
    }

    /// Checks that a number is in the range of a parameter.
    ///
    /// - Parameters:
    ///   - value: The number; `nan` is in no range.
    ///   - range: The valid numbers.
    ///   - name: The subject of the message, such as "A blur's sigma".
    /// - Throws: ``Code/invalidParameter``.
    static func check<Value: Comparable>(
        _ value: Value,
        in range: ClosedRange<Value>,
        _ name: String
    ) throws(TransformError) {
        guard !range.contains(value) else { return }
        throw .invalidParameter(
            "\(name) cannot be \(value); choose a number from \(range.lowerBound) to \(range.upperBound)."
        )
    }
}

extension TintypeErrorCode {
    /// A parameter is invalid, or invalid for this image.
    public static let invalidParameter = TintypeErrorCode("invalidParameter", .request)
    /// The underlying library refused the operation.
    public static let failed = TintypeErrorCode("failed", .internalFailure)
}

extension PixelLayout {
    /// Returns the layout of a result.
    ///
    /// - Throws: `TransformError.Code.invalidSize` if no image can have this size.
    static func result(_ format: PixelFormat, width: Int, height: Int) throws(TransformError) -> PixelLayout {
        do {
            return try PixelLayout(format: format, width: width, height: height)
        } catch {
            throw .invalidSize(error.message)
        }
    }
}
