// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import TintypeCaching
import TintypeDownloading
@_exported public import TintypeErrors
public import TintypeHTTP

/// The error of a load.
///
/// Cancellation is never a `LoadError`: it is always a `CancellationError`.
public struct LoadError: TintypeError {
    /// The kinds of failure.
    public typealias Code = TintypeErrorCode

    /// The kind of failure.
    ///
    /// Errors of downloads, coders and caches keep their codes.
    public let code: Code
    /// The event and the advice, in full sentences, for the people who run the program.
    ///
    /// It may contain inner addresses, rules of the network policy and paths. Log it, and send clients the
    /// ``publicMessage``.
    public let message: String
    /// The underlying error: a `DownloadError`, a `CodingError`, a `CacheError`, or another one.
    public let underlyingError: (any Error)?
    /// The errors of the request and its alternatives, in the order of the attempts; empty without alternatives.
    public package(set) var attempts: [LoadAttempt] = []
    /// The header fields of the origin's response, if it answered; of the cached response for ``TintypeErrorCode/notModified``.
    ///
    /// A server that forwards the condition of a client takes the `ETag` of its 304 from here.
    public package(set) var headers: HeaderFields

    /// The status of the origin's response, if it answered; otherwise `nil`.
    public var status: Int? { (self.underlyingError as? DownloadError)?.status }
    /// The URL that failed, after redirects and without credentials, if a download failed; otherwise `nil`.
    public var url: URL? { (self.underlyingError as? DownloadError)?.url }
    /// The HTTP status that a server should answer with: that of the code, or 404 for a 404 or 410 of the origin.
    public var httpStatus: Int { self.status == 404 || self.status == 410 ? 404 : self.code.httpStatus }
    /// A sentence that clients may see: it contains no address, path or setting.
    public var publicMessage: String { self.code.publicMessage }

    /// Creates an error.
    ///
    /// ```swift
    /// throw LoadError(code: .refused, message: "The user may not see this image; sign in first.")
    /// ```
    public init(code: Code, message: String, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
        self.headers = (underlyingError as? DownloadError)?.headers ?? [:]
    }
}

extension TintypeErrorCode {
    /// The request allows only the caches, and they do not have the image.
    public static let notInCache = TintypeErrorCode("notInCache", .request, httpStatus: 504)
    /// The request has a condition of its own, and the caller's copy is current.
    public static let notModified = TintypeErrorCode("notModified", .request, httpStatus: 304)
    /// The configuration's `shouldDownload` refused the request to the origin.
    public static let downloadRefused = TintypeErrorCode("downloadRefused", .refused)
    /// A field of the request makes no sense, such as a limit of no bytes.
    public static let invalidRequest = TintypeErrorCode("invalidRequest", .request)
    /// The disk tier could not store the bytes for another reason.
    public static let cacheFailed = TintypeErrorCode("cacheFailed", .internalFailure)
}

/// A failed attempt at one of several sources.
public struct LoadAttempt: Sendable {
    /// The request.
    public let request: ImageRequest
    /// The error.
    public let error: LoadError

    /// Creates the record of a failed attempt.
    package init(request: ImageRequest, error: LoadError) {
        self.request = request
        self.error = error
    }
}

extension LoadError: LocalizedError {
    /// The message, for programs that print `localizedDescription`.
    public var errorDescription: String? { self.message }
}

extension LoadError {
    /// Returns the error that a load throws for an error of one of its parts.
    ///
    /// Cancellations and `LoadError`s stay as they are; all others are wrapped.
    package static func wrapping(_ error: any Error) -> any Error {
        switch error {
        case is CancellationError, is LoadError: error
        // Cache errors have codes of their own here. Only stores report them.
        case let error as any TintypeError where !(error is CacheError):
            LoadError(code: error.code, message: error.message, underlyingError: error)
        default: LoadError(code: .unexpected, message: "The load failed: \(error).", underlyingError: error)
        }
    }

    /// Creates the error for a request that waits for the store.
    package init(storing error: any Error) {
        let cacheError = error as? CacheError
        let named: Set<Code> = [
            .diskFull, .cacheNotWritable, .cacheNotPrivate, .tooManyOpenFiles, .tooManyThreads, .outOfMemory,
        ]
        let code = cacheError.map(\.code).flatMap { named.contains($0) ? $0 : nil } ?? .cacheFailed
        self.init(code: code, message: cacheError?.message ?? "\(error)", underlyingError: error)
    }
}
