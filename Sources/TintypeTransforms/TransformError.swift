/// Why a picture could not be transformed.
public struct TransformError: Error, Sendable, CustomStringConvertible {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The stable name of the code.
        public let description: String

        /// A target size is under 1 pixel, or larger than can be made.
        public static let invalidSize = Code(description: "invalidSize")
        /// A parameter makes no sense, or not for this picture.
        public static let invalidParameter = Code(description: "invalidParameter")
        /// The library that does the work refused it.
        public static let failed = Code(description: "failed")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in a full sentence.
    public let message: String

    /// Creates an error.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(self.code): \(self.message)" }
}
