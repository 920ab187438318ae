public import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeDownloading
@_exported public import TintypeErrors
import TintypeImage
import TintypeTransforms

/// Why a load failed.
///
/// Cancellation is never a `LoadError`: it is always a `CancellationError`.
public struct LoadError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// What kind of failure it was; errors of the parts keep their codes.
    public let code: Code
    /// The event and the advice, in full sentences, for the people who run the program.
    ///
    /// It may name addresses inside, rules of the network policy and paths: log it, and send clients a text of your own that
    /// ``code`` chooses. `Docs/network-policy.md` says which codes they may tell apart.
    public let message: String
    /// The error of the part that failed: a `DownloadError`, a `CodingError`, a `CacheError`, or another.
    public let underlyingError: (any Error)?
    /// Why the request and its alternatives failed, in the order in which they were tried; empty where there are none.
    public internal(set) var attempts: [LoadAttempt] = []
    /// The header fields of the response that says so, if the code is ``Code/notModified``; otherwise empty.
    ///
    /// A server that hands on the condition of its own client takes the `ETag` of its 304 from here.
    public internal(set) var headers: HeaderFields = [:]

    /// Creates an error.
    public init(code: Code, message: String, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
    }
}

extension TintypeErrorCode {
    /// The request said to look only in the caches, and the image is not there.
    public static let notInCache = TintypeErrorCode("notInCache")
    /// The request had a condition of its own, and the copy that it names is current.
    public static let notModified = TintypeErrorCode("notModified")
    /// The configuration's `shouldDownload` did not let the loader ask the origin.
    public static let downloadRefused = TintypeErrorCode("downloadRefused")
    /// A field of the request makes no sense, such as a limit of no bytes.
    public static let invalidRequest = TintypeErrorCode("invalidRequest")
    /// The disk tier could not store the bytes for another reason.
    public static let cacheFailed = TintypeErrorCode("cacheFailed")
}

/// One of several sources that failed.
public struct LoadAttempt: Sendable {
    /// What was asked for.
    public let request: ImageRequest
    /// Why it failed.
    public let error: LoadError
}

extension LoadError: LocalizedError {
    /// The message, for programs that print `localizedDescription`.
    public var errorDescription: String? { self.message }
}

extension LoadError {
    /// What a load throws for an error of one of its parts: a cancellation and a `LoadError`
    /// are themselves, everything else is wrapped.
    static func wrapping(_ error: any Error) -> any Error {
        switch error {
        case is CancellationError, is LoadError: error
        // A cache's errors have codes of their own here, and reach a caller only of stores.
        case let error as any TintypeError where !(error is CacheError):
            LoadError(code: error.code, message: error.message, underlyingError: error)
        default: LoadError(code: .unexpected, message: "The load failed: \(error).", underlyingError: error)
        }
    }

    /// What a request that waits for the store is told.
    init(storing error: any Error) {
        let cacheError = error as? CacheError
        let named: Set<Code> = [
            .diskFull, .cacheNotWritable, .cacheNotPrivate, .tooManyOpenFiles, .tooManyThreads, .outOfMemory,
        ]
        let code = cacheError.map(\.code).flatMap { named.contains($0) ? $0 : nil } ?? .cacheFailed
        self.init(code: code, message: cacheError?.message ?? "\(error)", underlyingError: error)
    }
}
