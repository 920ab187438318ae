import TintypeConcurrency
@_exported public import TintypeErrors
public import TintypeImage

/// Why bytes could not be made into an image, or an image into bytes.
public struct CodingError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in a full sentence.
    public let message: String
    /// The format at hand, where it was recognised.
    public let format: ImageFormat?

    /// Creates an error.
    public init(code: Code, message: String, format: ImageFormat? = nil) {
        self.code = code
        self.message = message
        self.format = format
    }

    /// The thread of a lane was refused.
    init(_ error: ThreadError) {
        self.init(code: error.code, message: error.message)
    }

    /// Whether the bytes are at fault, and what can be read of them may be shown: not where memory or work ran out.
    var isDamage: Bool { self.code == .corrupt || self.code == .truncated }

    /// The bytes break the rules of `format`; `reason` is what its library said.
    static func corrupt(_ format: ImageFormat, _ reason: String) -> CodingError {
        CodingError(
            code: .corrupt,
            message: "The \(format) data is damaged (\(reason)); get it again from its source.",
            format: format
        )
    }

    /// The end of the bytes is missing.
    static func truncated(_ format: ImageFormat) -> CodingError {
        CodingError(
            code: .truncated,
            message: "The \(format) data ends too early; get it again, or allow truncated data.",
            format: format
        )
    }

    /// An image can't be written as `format`.
    static func notEncoded(_ format: ImageFormat, _ message: String) -> CodingError {
        CodingError(code: .encodingFailed, message: message, format: format)
    }

    /// A file takes more than the limits allow.
    static func overLimit(_ code: Code, _ format: ImageFormat?, _ what: String) -> CodingError {
        CodingError(code: code, message: "\(what); raise that limit if you trust the source.", format: format)
    }

    /// A memory request for codec state failed.
    static func outOfMemory(_ format: ImageFormat) -> CodingError {
        CodingError(
            code: .outOfMemory,
            message: "There is no memory to code the \(format) picture; lower the limits or the number of lanes.",
            format: format
        )
    }

    /// An animation has fewer frames than were asked for.
    package static func noFrame(_ index: Int, of count: Int, _ format: ImageFormat) -> CodingError {
        CodingError(
            code: .invalidOptions,
            message: "There is no frame \(index): the picture has \(count), from 0 on.",
            format: format
        )
    }
}

extension TintypeErrorCode {
    /// The bytes are no image of any known format.
    public static let notAnImage = TintypeErrorCode("notAnImage")
    /// The format is known, but no registered coder reads or writes it.
    public static let unsupportedFormat = TintypeErrorCode("unsupportedFormat")
    /// The coder knows the format, but not the variant that the bytes use.
    public static let unsupportedFeature = TintypeErrorCode("unsupportedFeature")
    /// The bytes break the rules of their format.
    public static let corrupt = TintypeErrorCode("corrupt")
    /// The end of the image is missing, and ``DecodeOptions/allowsTruncated`` is false.
    public static let truncated = TintypeErrorCode("truncated")
    /// The header declares more pixels than the limits allow: ``DecodingLimits/maximumPixels``.
    public static let tooManyPixels = TintypeErrorCode("tooManyPixels")
    /// The header declares a longer side than the limits allow: ``DecodingLimits/maximumSide``.
    public static let sideTooLong = TintypeErrorCode("sideTooLong")
    /// There are more encoded bytes than the limits allow: ``DecodingLimits/maximumEncodedBytes``.
    public static let tooManyBytes = TintypeErrorCode("tooManyBytes")
    /// Decoding takes more work than the limits allow: ``DecodingLimits/maximumWork``.
    public static let tooMuchWork = TintypeErrorCode("tooMuchWork")
    /// An animation has more frames than the limits allow: ``DecodingLimits/maximumFrames``.
    public static let tooManyFrames = TintypeErrorCode("tooManyFrames")
    /// The frames of an animation have more pixels together than the limits allow:
    /// ``DecodingLimits/maximumAnimationPixels``.
    public static let animationTooLarge = TintypeErrorCode("animationTooLarge")
    /// An option makes no sense for this image.
    public static let invalidOptions = TintypeErrorCode("invalidOptions")
    /// What is asked for can't be done without loss.
    public static let notLossless = TintypeErrorCode("notLossless")
    /// The encoder refused the image.
    public static let encodingFailed = TintypeErrorCode("encodingFailed")
}
