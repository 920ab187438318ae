import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeImage
import TintypeTransforms

extension LoadError {
    /// What a load throws for an error of one of its parts: a cancellation and a `LoadError`
    /// are themselves, everything else is wrapped.
    static func wrapping(_ error: any Error) -> any Error {
        switch error {
        case is CancellationError, is LoadError: error
        case let error as DownloadError: Self.part(error, code: error.code.description, message: error.message)
        case let error as CodingError: Self.part(error, code: error.code.description, message: error.message)
        case let error as TransformError: Self.part(error, code: error.code.description, message: error.message)
        case let error as ImageError: Self.part(error, code: error.code.description, message: error.message)
        default: LoadError(code: .unexpected, message: "The load failed: \(error).", underlyingError: error)
        }
    }

    /// What a request that waits for the store is told.
    init(storing error: any Error) {
        let cacheError = error as? CacheError
        let code: Code =
            switch cacheError?.code {
            case .noSpace: .diskFull
            case .notWritable: .cacheNotWritable
            case .tooManyOpenFiles: .tooManyOpenFiles
            case .tooManyThreads: .tooManyThreads
            case .outOfMemory: .outOfMemory
            default: .cacheFailed
            }
        self.init(code: code, message: cacheError?.message ?? "\(error)", underlyingError: error)
    }

    private static func part(_ error: any Error, code: String, message: String) -> LoadError {
        LoadError(
            code: Code.Value(rawValue: code).map { Code($0) } ?? .unexpected,
            message: message,
            underlyingError: error
        )
    }
}
