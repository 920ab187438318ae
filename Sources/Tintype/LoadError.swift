public import FoundationEssentials

/// Why a load failed.
///
/// Cancellation is never a `LoadError`: it is always a `CancellationError`.
public struct LoadError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do, in full sentences.
    public let message: String
    /// The error of the part that failed: a `DownloadError`, a `CodingError`, a `CacheError`, or another.
    public let underlyingError: (any Error)?

    /// Creates an error.
    public init(code: Code, message: String, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }

    public var description: String { "\(self.code): \(self.message)" }
}

extension LoadError: LocalizedError {
    /// The message, for programs that print `localizedDescription`.
    public var errorDescription: String? { self.message }
}
