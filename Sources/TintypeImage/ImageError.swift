/// Why a picture's pixels could not be laid out or allocated.
public struct ImageError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The stable name of the code.
        public let description: String

        /// A side is under 1, or the bytes of the picture do not fit in an `Int`.
        public static let invalidSize = Code(description: "invalidSize")
        /// The system refused the memory for the pixels.
        public static let outOfMemory = Code(description: "outOfMemory")
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

    /// The system refused so many bytes.
    package static func outOfMemory(_ byteCount: Int) -> ImageError {
        ImageError(
            code: .outOfMemory,
            message: "There is no memory for \(byteCount) bytes of a picture; lower the limits or the number of lanes, "
                + "or raise the limit of memory (ulimit -v, or that of the cgroup)."
        )
    }
}
