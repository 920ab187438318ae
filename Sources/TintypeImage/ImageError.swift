/// Why a picture's pixels could not be laid out or allocated.
public struct ImageError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case invalidSize
            case outOfMemory
        }

        private let value: Value

        /// The stable name of the code.
        public var description: String { self.value.rawValue }

        /// A side is under 1, or the bytes of the picture do not fit in an `Int`.
        public static let invalidSize = Code(value: .invalidSize)
        /// The system refused the memory for the pixels.
        public static let outOfMemory = Code(value: .outOfMemory)
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
