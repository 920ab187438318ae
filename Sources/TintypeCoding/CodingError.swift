// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency
@_exported public import TintypeErrors
public import TintypeImage

/// An error that prevented bytes from being decoded into an image, or an image from being encoded.
public struct CodingError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// The kind of failure.
    public let code: Code
    /// The failure and the remedy, in a full sentence.
    public let message: String
    /// The format in question, or `nil` if it was not recognised.
    public let format: ImageFormat?

    /// Creates an error.
    ///
    /// ```swift
    /// throw CodingError(code: .unsupportedFormat, message: "The file is a sequence; send one image.", format: .gif)
    /// ```
    public init(code: Code, message: String, format: ImageFormat? = nil) {
        self.code = code
        self.message = message
        self.format = format
    }

    /// Creates the error for a lane whose thread the system refused.
    init(_ error: ThreadError) {
        self.init(code: error.code, message: error.message)
    }

    /// Whether the bytes are at fault, so that their readable part may be shown; `false` if memory or work ran out.
    var isDamage: Bool { self.code == .corrupt || self.code == .truncated }

    /// Returns the error for bytes that break the rules of `format`; `reason` is the message of its library.
    static func corrupt(_ format: ImageFormat, _ reason: String) -> CodingError {
        CodingError(
            code: .corrupt,
            message: "The \(format) data is damaged (\(reason)); get it again from its source.",
            format: format
        )
    }

    /// Returns the error for bytes whose end is missing.
    static func truncated(_ format: ImageFormat) -> CodingError {
        CodingError(
            code: .truncated,
            message: "The \(format) data ends too early; get it again, or allow truncated data.",
            format: format
        )
    }

    /// Returns the error for an image that cannot be written as `format`.
    static func notEncoded(_ format: ImageFormat, _ message: String) -> CodingError {
        CodingError(code: .encodingFailed, message: message, format: format)
    }

    /// Returns the error for a file that exceeds a limit.
    static func overLimit(_ code: Code, _ format: ImageFormat?, _ what: String) -> CodingError {
        CodingError(code: code, message: "\(what); raise that limit if you trust the source.", format: format)
    }

    /// Returns the error for a failed allocation of codec state.
    static func outOfMemory(_ format: ImageFormat) -> CodingError {
        CodingError(
            code: .outOfMemory,
            message: "There is no memory to code the \(format) image; lower the limits or the number of lanes.",
            format: format
        )
    }

    /// Returns the error for a frame index that the animation does not have.
    package static func noFrame(_ index: Int, of count: Int, _ format: ImageFormat) -> CodingError {
        CodingError(
            code: .invalidOptions,
            message: "There is no frame \(index): the image has \(count), from 0 on.",
            format: format
        )
    }
}

extension TintypeErrorCode {
    /// The bytes are not an image of any known format.
    public static let notAnImage = TintypeErrorCode("notAnImage", .notAnImage)
    /// The format is known, but no registered coder reads or writes it.
    public static let unsupportedFormat = TintypeErrorCode("unsupportedFormat", .notAnImage)
    /// The coder knows the format, but not the variant that the bytes use.
    public static let unsupportedFeature = TintypeErrorCode("unsupportedFeature", .notAnImage)
    /// The bytes break the rules of their format.
    public static let corrupt = TintypeErrorCode("corrupt", .notAnImage)
    /// The end of the image is missing, and ``DecodeOptions/allowsTruncated`` is false.
    public static let truncated = TintypeErrorCode("truncated", .notAnImage)
    /// The header declares more pixels than the limits allow: ``DecodingLimits/maximumPixels``.
    public static let tooManyPixels = TintypeErrorCode("tooManyPixels", .overLimit)
    /// The header declares a longer side than the limits allow: ``DecodingLimits/maximumSide``.
    public static let sideTooLong = TintypeErrorCode("sideTooLong", .overLimit)
    /// There are more encoded bytes than the limits allow: ``DecodingLimits/maximumEncodedBytes``.
    public static let tooManyBytes = TintypeErrorCode("tooManyBytes", .overLimit)
    /// Decoding takes more work than the limits allow: ``DecodingLimits/maximumWork``.
    public static let tooMuchWork = TintypeErrorCode("tooMuchWork", .overLimit)
    /// An animation has more frames than the limits allow: ``DecodingLimits/maximumFrames``.
    public static let tooManyFrames = TintypeErrorCode("tooManyFrames", .overLimit)
    /// The frames of an animation together have more pixels than the limits allow:
    /// ``DecodingLimits/maximumAnimationPixels``.
    public static let animationTooLarge = TintypeErrorCode("animationTooLarge", .overLimit)
    /// An option is not valid for this image.
    public static let invalidOptions = TintypeErrorCode("invalidOptions", .request)
    /// The requested change is not possible without loss.
    public static let notLossless = TintypeErrorCode("notLossless", .request)
    /// The encoder refused the image.
    public static let encodingFailed = TintypeErrorCode("encodingFailed", .internalFailure)
}
