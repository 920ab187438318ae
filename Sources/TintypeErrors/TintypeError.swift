/// An error of the library: what failed, and what to do about it.
///
/// Cancellation is none: it is always a `CancellationError`.
public protocol TintypeError: Error, CustomStringConvertible {
    /// What kind of failure it was.
    var code: TintypeErrorCode { get }
    /// What happened and what to do, in full sentences, for the people who run the program.
    var message: String { get }
}

extension TintypeError {
    /// The code and the message.
    public var description: String { "\(self.code): \(self.message)" }
}

/// The kinds of failure; more may be added.
///
/// Each module adds the codes of its own errors, which keep their names when a load fails because of them.
public struct TintypeErrorCode: Sendable, Hashable, CustomStringConvertible {
    /// The stable name, which the command prints.
    public let description: String

    package init(_ name: String) {
        self.description = name
    }

    /// A side of an image is under 1, or the size is more than can be made.
    public static let invalidSize = TintypeErrorCode("invalidSize")
    /// The system refused memory.
    public static let outOfMemory = TintypeErrorCode("outOfMemory")
    /// The system refused a thread: the process, its user or its cgroup has as many as it may have.
    public static let tooManyThreads = TintypeErrorCode("tooManyThreads")
    /// The process or the system has no file descriptor left (`EMFILE`, `ENFILE`).
    public static let tooManyOpenFiles = TintypeErrorCode("tooManyOpenFiles")
    /// The loader, downloader or cache was shut down before.
    public static let shutDown = TintypeErrorCode("shutDown")
    /// A failure that has no code of its own; the underlying error, if there is one, says more.
    public static let unexpected = TintypeErrorCode("unexpected")
}
