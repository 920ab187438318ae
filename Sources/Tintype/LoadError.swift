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

extension LoadError {
    /// The kinds of failure; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The raw value is the stable name; codes of the parts below keep their names here.
        enum Value: String, Sendable, CaseIterable {
            // Of the load itself.
            case notInCache, notModified, shutDown, unexpected
            // Of downloads.
            case invalidURL, invalidHeader, unsupportedScheme, hostNotFound, cannotConnect, tlsFailed, timedOut
            case connectionLost, badStatus, tooManyRedirects, unsafeRedirect, invalidResponse, bodyTooLarge
            case bodyCutShort, emptyBody, fileNotFound, fileUnreadable
            case tooSlow, unacceptableContentType, refused, decryptionFailed
            case schemeNotAllowed, userInformationInURL, malformedHost, portNotAllowed, hostNotAllowed,
                addressNotAllowed
            // Of coding and transforms.
            case notAnImage, unsupportedFormat, unsupportedFeature, corrupt, truncated, tooManyPixels, sideTooLong
            case tooManyBytes, tooMuchWork, tooManyFrames, animationTooLarge, invalidOptions, encodingFailed,
                outOfMemory
            case invalidSize, failed
            // Of the disk tier.
            case diskFull, cacheNotWritable, cacheFailed
            // Of the process.
            case tooManyOpenFiles, tooManyThreads
        }

        let value: Value

        init(_ value: Value) {
            self.value = value
        }

        /// The stable name, which the command prints.
        public var description: String { self.value.rawValue }

        /// The request said to look only in the caches, and the picture is not there.
        public static let notInCache = Code(.notInCache)
        /// The request had a condition of its own, and the copy that it names is current.
        public static let notModified = Code(.notModified)
        /// The loader has been shut down.
        public static let shutDown = Code(.shutDown)
        /// Something failed that has no code of its own.
        public static let unexpected = Code(.unexpected)

        /// The URL can't be requested.
        public static let invalidURL = Code(.invalidURL)
        /// A header field can't be sent.
        public static let invalidHeader = Code(.invalidHeader)
        /// The URL's scheme is not one of `http`, `https`, `file` and `data`.
        public static let unsupportedScheme = Code(.unsupportedScheme)
        /// The host's name has no address.
        public static let hostNotFound = Code(.hostNotFound)
        /// Nothing answers at the host's address.
        public static let cannotConnect = Code(.cannotConnect)
        /// The connection could not be secured.
        public static let tlsFailed = Code(.tlsFailed)
        /// The origin sent nothing for too long.
        public static let timedOut = Code(.timedOut)
        /// The connection broke.
        public static let connectionLost = Code(.connectionLost)
        /// The origin answered with a status that is not success.
        public static let badStatus = Code(.badStatus)
        /// The origin redirected too often.
        public static let tooManyRedirects = Code(.tooManyRedirects)
        /// The origin redirected to where the loader does not go.
        public static let unsafeRedirect = Code(.unsafeRedirect)
        /// The origin's answer is not valid HTTP.
        public static let invalidResponse = Code(.invalidResponse)
        /// The body is larger than the limit.
        public static let bodyTooLarge = Code(.bodyTooLarge)
        /// The body ended before its declared length.
        public static let bodyCutShort = Code(.bodyCutShort)
        /// The origin answered with no bytes.
        public static let emptyBody = Code(.emptyBody)
        /// The body came more slowly than the limit allows.
        public static let tooSlow = Code(.tooSlow)
        /// The body has a media type that was not asked for.
        public static let unacceptableContentType = Code(.unacceptableContentType)
        /// A hook refused the request or its response.
        public static let refused = Code(.refused)
        /// A hook could not decrypt the body.
        public static let decryptionFailed = Code(.decryptionFailed)
        /// There is no such file.
        public static let fileNotFound = Code(.fileNotFound)
        /// The file can't be read.
        public static let fileUnreadable = Code(.fileUnreadable)
        /// The network policy does not allow the URL's scheme.
        public static let schemeNotAllowed = Code(.schemeNotAllowed)
        /// The URL holds a user or a password, which the network policy does not allow.
        public static let userInformationInURL = Code(.userInformationInURL)
        /// The URL's host is not written in a way that every reader reads alike.
        public static let malformedHost = Code(.malformedHost)
        /// The network policy does not allow the port.
        public static let portNotAllowed = Code(.portNotAllowed)
        /// The network policy does not allow the host.
        public static let hostNotAllowed = Code(.hostNotAllowed)
        /// The network policy denies every address of the host.
        public static let addressNotAllowed = Code(.addressNotAllowed)

        /// The bytes are no picture of any known format.
        public static let notAnImage = Code(.notAnImage)
        /// The format is known, but no registered coder reads or writes it.
        public static let unsupportedFormat = Code(.unsupportedFormat)
        /// The coder does not know the variant of the format.
        public static let unsupportedFeature = Code(.unsupportedFeature)
        /// The bytes break the rules of their format.
        public static let corrupt = Code(.corrupt)
        /// The end of the picture is missing.
        public static let truncated = Code(.truncated)
        /// The picture has more pixels than the limits allow.
        public static let tooManyPixels = Code(.tooManyPixels)
        /// A side of the picture is longer than the limits allow.
        public static let sideTooLong = Code(.sideTooLong)
        /// The picture has more encoded bytes than the limits allow.
        public static let tooManyBytes = Code(.tooManyBytes)
        /// Decoding takes more work than the limits allow.
        public static let tooMuchWork = Code(.tooMuchWork)
        /// An animation has more frames than the limits allow.
        public static let tooManyFrames = Code(.tooManyFrames)
        /// The frames of an animation have more pixels together than the limits allow.
        public static let animationTooLarge = Code(.animationTooLarge)
        /// An option makes no sense for this picture.
        public static let invalidOptions = Code(.invalidOptions)
        /// The picture could not be encoded.
        public static let encodingFailed = Code(.encodingFailed)
        /// The system refused memory.
        public static let outOfMemory = Code(.outOfMemory)
        /// A size under 1 pixel, or over the limits, was asked for.
        public static let invalidSize = Code(.invalidSize)
        /// A transform failed.
        public static let failed = Code(.failed)

        /// The disk of the cache is full.
        public static let diskFull = Code(.diskFull)
        /// The folder of the cache can't be written.
        public static let cacheNotWritable = Code(.cacheNotWritable)
        /// The disk tier could not store the bytes for another reason.
        public static let cacheFailed = Code(.cacheFailed)

        /// The process or the system has no file descriptor left.
        public static let tooManyOpenFiles = Code(.tooManyOpenFiles)
        /// The system refused a thread.
        public static let tooManyThreads = Code(.tooManyThreads)
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
