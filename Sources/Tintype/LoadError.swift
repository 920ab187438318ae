public import FoundationEssentials
import TintypeCaching
import TintypeCoding
import TintypeDownloading
import TintypeImage
import TintypeTransforms

/// Why a load failed.
///
/// Cancellation is never a `LoadError`: it is always a `CancellationError`.
public struct LoadError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was.
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

    public var description: String { "\(self.code): \(self.message)" }
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
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The stable name, which the command prints; codes of the parts below keep their names here.
        public let description: String

        /// The request said to look only in the caches, and the picture is not there.
        public static let notInCache = Code(description: "notInCache")
        /// The request had a condition of its own, and the copy that it names is current.
        public static let notModified = Code(description: "notModified")
        /// The configuration's `shouldDownload` did not let the loader ask the origin.
        public static let downloadRefused = Code(description: "downloadRefused")
        /// The loader has been shut down.
        public static let shutDown = Code(description: "shutDown")
        /// Something failed that has no code of its own.
        public static let unexpected = Code(description: "unexpected")

        /// A field of the request makes no sense, such as a limit of no bytes.
        public static let invalidRequest = Code(description: "invalidRequest")
        /// The URL can't be requested.
        public static let invalidURL = Code(description: "invalidURL")
        /// A header field can't be sent.
        public static let invalidHeader = Code(description: "invalidHeader")
        /// The URL's scheme is not one of `http`, `https`, `file` and `data`, and no fetcher loads others.
        public static let unsupportedScheme = Code(description: "unsupportedScheme")
        /// The host's name has no address.
        public static let hostNotFound = Code(description: "hostNotFound")
        /// Nothing answers at the host's address.
        public static let cannotConnect = Code(description: "cannotConnect")
        /// The proxy refused to connect to the host, or wants other credentials.
        public static let proxyRefused = Code(description: "proxyRefused")
        /// The connection could not be secured.
        public static let tlsFailed = Code(description: "tlsFailed")
        /// The origin sent nothing for too long.
        public static let timedOut = Code(description: "timedOut")
        /// The connection broke.
        public static let connectionLost = Code(description: "connectionLost")
        /// The origin answered with a status that is not success.
        public static let badStatus = Code(description: "badStatus")
        /// The origin redirected too often.
        public static let tooManyRedirects = Code(description: "tooManyRedirects")
        /// The origin redirected to where the loader does not go.
        public static let unsafeRedirect = Code(description: "unsafeRedirect")
        /// The origin's answer is not valid HTTP.
        public static let invalidResponse = Code(description: "invalidResponse")
        /// The body is larger than the limit.
        public static let bodyTooLarge = Code(description: "bodyTooLarge")
        /// The body ended before its declared length.
        public static let bodyCutShort = Code(description: "bodyCutShort")
        /// The origin answered with no bytes.
        public static let emptyBody = Code(description: "emptyBody")
        /// The body came more slowly than the limit allows.
        public static let tooSlow = Code(description: "tooSlow")
        /// The body has a media type that was not asked for.
        public static let unacceptableContentType = Code(description: "unacceptableContentType")
        /// A hook refused the request or its response.
        public static let refused = Code(description: "refused")
        /// A hook could not decrypt the body.
        public static let decryptionFailed = Code(description: "decryptionFailed")
        /// There is no such file.
        public static let fileNotFound = Code(description: "fileNotFound")
        /// The file can't be read.
        public static let fileUnreadable = Code(description: "fileUnreadable")
        /// The network policy does not allow the URL's scheme.
        public static let schemeNotAllowed = Code(description: "schemeNotAllowed")
        /// The URL holds a user or a password, which the network policy does not allow.
        public static let userInformationInURL = Code(description: "userInformationInURL")
        /// The URL's host is not written in a way that every reader reads alike.
        public static let malformedHost = Code(description: "malformedHost")
        /// The network policy does not allow the port.
        public static let portNotAllowed = Code(description: "portNotAllowed")
        /// The network policy does not allow the host.
        public static let hostNotAllowed = Code(description: "hostNotAllowed")
        /// The network policy denies every address of the host.
        public static let addressNotAllowed = Code(description: "addressNotAllowed")

        /// The bytes are no picture of any known format.
        public static let notAnImage = Code(description: "notAnImage")
        /// The format is known, but no registered coder reads or writes it.
        public static let unsupportedFormat = Code(description: "unsupportedFormat")
        /// The coder does not know the variant of the format.
        public static let unsupportedFeature = Code(description: "unsupportedFeature")
        /// The bytes break the rules of their format.
        public static let corrupt = Code(description: "corrupt")
        /// The end of the image is missing; ``LoadOptions/allowTruncated`` accepts it.
        public static let truncated = Code(description: "truncated")
        /// The picture has more pixels than the limits allow.
        public static let tooManyPixels = Code(description: "tooManyPixels")
        /// A side of the picture is longer than the limits allow.
        public static let sideTooLong = Code(description: "sideTooLong")
        /// The picture has more encoded bytes than the limits allow.
        public static let tooManyBytes = Code(description: "tooManyBytes")
        /// Decoding takes more work than the limits allow.
        public static let tooMuchWork = Code(description: "tooMuchWork")
        /// An animation has more frames than the limits allow.
        public static let tooManyFrames = Code(description: "tooManyFrames")
        /// The frames of an animation have more pixels together than the limits allow.
        public static let animationTooLarge = Code(description: "animationTooLarge")
        /// An option makes no sense for this picture.
        public static let invalidOptions = Code(description: "invalidOptions")
        /// The picture could not be encoded.
        public static let encodingFailed = Code(description: "encodingFailed")
        /// The system refused memory.
        public static let outOfMemory = Code(description: "outOfMemory")
        /// A size under 1 pixel, or over the limits, was asked for.
        public static let invalidSize = Code(description: "invalidSize")
        /// A transform failed.
        public static let failed = Code(description: "failed")

        /// The disk of the cache is full.
        public static let diskFull = Code(description: "diskFull")
        /// The folder of the cache can't be written.
        public static let cacheNotWritable = Code(description: "cacheNotWritable")
        /// Another user may change the folder of the cache, which is used all the same.
        public static let cacheNotPrivate = Code(description: "cacheNotPrivate")
        /// The disk tier could not store the bytes for another reason.
        public static let cacheFailed = Code(description: "cacheFailed")

        /// The process or the system has no file descriptor left.
        public static let tooManyOpenFiles = Code(description: "tooManyOpenFiles")
        /// The system refused a thread.
        public static let tooManyThreads = Code(description: "tooManyThreads")
    }
}

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
            case .notPrivate: .cacheNotPrivate
            case .tooManyOpenFiles: .tooManyOpenFiles
            case .tooManyThreads: .tooManyThreads
            case .outOfMemory: .outOfMemory
            default: .cacheFailed
            }
        self.init(code: code, message: cacheError?.message ?? "\(error)", underlyingError: error)
    }

    private static func part(_ error: any Error, code: String, message: String) -> LoadError {
        LoadError(code: Code(description: code), message: message, underlyingError: error)
    }
}
