// SPDX-License-Identifier: Apache-2.0

@_exported public import TintypeErrors

/// Why an image's pixels could not be laid out or allocated.
public struct ImageError: TintypeError, Equatable {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// The kind of failure.
    public let code: Code
    /// The cause and the remedy, in a full sentence.
    public let message: String

    /// Creates an error.
    ///
    /// ```swift
    /// throw ImageError(code: .invalidSize, message: "The tile has no pixels; give it a side of at least 1.")
    /// ```
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// The system refused so many bytes.
    package static func outOfMemory(_ byteCount: Int) -> ImageError {
        ImageError(
            code: .outOfMemory,
            message: "There is no memory for \(byteCount) bytes of an image; lower the limits or the number of lanes, "
                + "or raise the limit of memory (ulimit -v, or that of the cgroup)."
        )
    }
}
