// SPDX-License-Identifier: Apache-2.0

// All modules that load images depend on this one, so a build on another system fails here with a clear message.
#if !os(Linux)
#error("Tintype runs on Linux only.")
#endif

/// An error of the library, with its cause and its remedy.
///
/// Cancellation is never one of these errors: it is always a `CancellationError`.
///
/// ```swift
/// do {
///     let image = try await loader.image(for: request)
/// } catch let error as any TintypeError {
///     print(error.code, error.message)
/// }
/// ```
public protocol TintypeError: Error, CustomStringConvertible {
    /// The kind of failure.
    var code: TintypeErrorCode { get }
    /// The event and the advice, in full sentences, for the people who run the program.
    var message: String { get }
}

extension TintypeError {
    /// The code and the message.
    public var description: String { "\(self.code): \(self.message)" }
}

/// A kind of failure.
///
/// Each module defines the codes of its own errors. A load that fails because of such an error has the same code.
/// `Docs/errors.md` lists all codes. Later versions may add codes.
public struct TintypeErrorCode: Sendable, Hashable, CustomStringConvertible {
    /// A group of codes that call for the same reaction.
    public enum Category: String, Sendable, Hashable, CaseIterable {
        /// The request is at fault, or its own condition or cache policy: change the request.
        case request
        /// A policy or a hook of the program refused the request.
        case refused
        /// The origin, or the way to it, failed.
        case origin
        /// The bytes are not an image that the coders read.
        case notAnImage
        /// The image exceeds a limit.
        case overLimit
        /// The program is out of a resource, or is shutting down: try again later.
        case busy
        /// The program failed.
        case internalFailure

        /// The HTTP status that a server should answer with (RFC 9110, 15).
        public var httpStatus: Int {
            switch self {
            case .request: 400
            case .refused: 403
            case .origin: 502
            case .notAnImage: 422
            case .overLimit: 413
            case .busy: 503
            case .internalFailure: 500
            }
        }

        /// A sentence that clients may see.
        public var publicMessage: String {
            switch self {
            case .request: "The request cannot be served as it is."
            case .refused: "This image may not be requested."
            case .origin: "The image could not be loaded from its origin."
            case .notAnImage: "This address has no image that can be read."
            case .overLimit: "The image is too large."
            case .busy: "The server is busy. Try again later."
            case .internalFailure: "The image could not be made."
            }
        }
    }

    /// The stable name, which the command prints.
    public let description: String
    /// The category of the code.
    public let category: Category
    /// The HTTP status that a server should answer with.
    ///
    /// ``addressNotAllowed`` has the status of an origin that failed, so that clients cannot find out which names have an inner
    /// address.
    public let httpStatus: Int

    /// Creates a code.
    ///
    /// - Parameters:
    ///   - name: The stable name.
    ///   - category: The category.
    ///   - httpStatus: The HTTP status, if it is not the one of the category.
    package init(_ name: String, _ category: Category, httpStatus: Int? = nil) {
        self.description = name
        self.category = category
        self.httpStatus = httpStatus ?? category.httpStatus
    }

    /// A sentence that clients may see: it contains no address, path or setting.
    public var publicMessage: String {
        let looksLikeOrigin = self.category == .refused && self.httpStatus == Category.origin.httpStatus
        return (looksLikeOrigin ? .origin : self.category).publicMessage
    }

    /// A side of an image is under 1, or the size is more than can be made.
    public static let invalidSize = TintypeErrorCode("invalidSize", .request)
    /// The system refused memory.
    public static let outOfMemory = TintypeErrorCode("outOfMemory", .busy)
    /// The system refused a thread: the process, its user or its cgroup has as many as it may have.
    public static let tooManyThreads = TintypeErrorCode("tooManyThreads", .busy)
    /// The process or the system has no file descriptor left (`EMFILE`, `ENFILE`).
    public static let tooManyOpenFiles = TintypeErrorCode("tooManyOpenFiles", .busy)
    /// The loader, downloader or cache was shut down before.
    public static let shutDown = TintypeErrorCode("shutDown", .busy)
    /// A failure that has no code of its own; the underlying error, if there is one, says more.
    public static let unexpected = TintypeErrorCode("unexpected", .internalFailure)
}
