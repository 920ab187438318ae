import TintypeImage

/// Why a VP8L stream can't be read on.
enum VP8LError: Error {
    /// Its end is missing.
    case needsBytes
    /// It breaks the format.
    case damaged
    /// Its prefix codes would take more memory than its pixels.
    case tooManyCodes
    /// The system refuses memory for its pixels.
    case noMemory

    /// Whether nothing can be shown of a picture with so many complete rows, though what is missing may be.
    func isFatal(afterRows rowCount: Int) -> Bool {
        switch self {
        case .needsBytes: false
        case .damaged: rowCount == 0
        case .tooManyCodes, .noMemory: true
        }
    }
}

extension CodingError {
    /// What a caller is told.
    init(_ error: VP8LError) {
        self =
            switch error {
            case .needsBytes: .truncated(.webp)
            case .damaged: .corrupt(.webp, "its bit stream breaks the format")
            case .noMemory: .outOfMemory(.webp)
            case .tooManyCodes:
                CodingError(
                    code: .unsupportedFeature,
                    message: "The webp data has prefix codes that take more memory than its pixels; encode it again.",
                    format: .webp
                )
            }
    }
}
