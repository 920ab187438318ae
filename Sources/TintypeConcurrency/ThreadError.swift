import Glibc

/// Why the system refused to start a thread.
public struct ThreadError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        private enum Value: String, Sendable {
            case tooManyThreads
            case outOfMemory
        }

        private let value: Value

        /// The stable name of the code.
        public var description: String { self.value.rawValue }

        /// The process, its user or its cgroup has as many threads as it may have.
        public static let tooManyThreads = Code(value: .tooManyThreads)
        /// There is no memory, or no address space, for the thread's stack.
        public static let outOfMemory = Code(value: .outOfMemory)
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in a full sentence.
    public let message: String

    /// The refusal of the thread called `name`.
    package init(_ code: Code, name: String) {
        self.code = code
        self.message =
            switch code {
            case .outOfMemory:
                "There is no memory for the stack of the thread \(name); raise the limit of memory (ulimit -v)."
            default:
                "The system refused the thread \(name): there are too many; "
                    + "raise the limit of threads (ulimit -u, or pids.max of the cgroup)."
            }
    }

    public var description: String { "\(self.code): \(self.message)" }
}
