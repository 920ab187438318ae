/// Why a load failed.
public struct LoadError: Error, Sendable, CustomStringConvertible {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case unexpected
        }

        private let value: Value

        /// The stable name of the code.
        public var description: String { self.value.rawValue }

        /// Something that should not happen.
        public static let unexpected = Code(value: .unexpected)
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
