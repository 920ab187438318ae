import FoundationEssentials
import TintypeCaching
import TintypeDownloading

/// What the program has a say in while images are loaded: its functions, those of the loader and of the request.
final class LoadHooks: Sendable {
    private let keyFilter: LoaderActor.Configuration.KeyFilter?
    private let credentials: Credentials?
    private let optionsProcessor: LoaderActor.Configuration.OptionsProcessor?
    private let shouldDownload: LoaderActor.Configuration.DownloadDecision?
    private let shouldStore: LoaderActor.Configuration.StoreDecision?
    private let shouldRememberFailure: LoaderActor.Configuration.FailureDecision?
    private let requestModifier: ImageRequest.RequestModifier?
    private let responseModifier: ImageRequest.ResponseModifier?
    private let decryptor: ImageRequest.Decryptor?
    private let originalSerializer: ImageRequest.OriginalSerializer?
    /// Whether requests become others before anything is looked at.
    let changeRequests: Bool

    init(_ configuration: LoaderActor.Configuration) {
        self.keyFilter = configuration.keyFilter
        self.credentials = configuration.credentials
        self.optionsProcessor = configuration.optionsProcessor
        self.shouldDownload = configuration.shouldDownload
        self.shouldStore = configuration.shouldStore
        self.shouldRememberFailure = configuration.shouldRememberFailure
        self.requestModifier = configuration.requestModifier
        self.responseModifier = configuration.responseModifier
        self.decryptor = configuration.decryptor
        self.originalSerializer = configuration.originalSerializer
        self.changeRequests =
            configuration.keyFilter != nil || configuration.credentials != nil || configuration.optionsProcessor != nil
    }

    /// The request that is loaded in place of `request`.
    ///
    /// - Throws: `LoadError.Code.refused`, or what the processor throws of these: `LoadError`, `CancellationError` of a task
    ///   that was cancelled.
    func processed(_ request: ImageRequest) async throws -> ImageRequest {
        var request = request
        if let optionsProcessor {
            do {
                request = try await optionsProcessor(request)
            } catch {
                throw Self.refusal(error, of: request)
            }
        }
        if request.credentials == nil, let credentials { request.credentials = credentials }
        if request.cacheKey == nil, let key = self.keyFilter?(request) { request.cacheKey = key }
        return request
    }

    /// Whether the origin may be asked.
    ///
    /// - Throws: `LoadError.Code.downloadRefused`.
    func checkDownload(of request: ImageRequest) async throws {
        guard let shouldDownload, await !shouldDownload(request) else { return }
        throw LoadError(
            code: .downloadRefused,
            message:
                "\(request.displayURL) is not in the cache, and the configuration's shouldDownload keeps it from being "
                + "downloaded."
        )
    }

    /// Whether the cache may have what an origin sent, and what is made of it.
    func mayStore(_ metadata: EntryMetadata, of request: ImageRequest) async -> Bool {
        guard let shouldStore else { return true }
        return await shouldStore(metadata, request)
    }

    /// Whether a failure is remembered that may be.
    func mayRemember(_ error: LoadError, of request: ImageRequest) async -> Bool {
        guard let shouldRememberFailure else { return true }
        return await shouldRememberFailure(error, request)
    }

    /// The bytes that the disk keeps of `body`; `nil` for none.
    func serialized(_ body: Data, of request: ImageRequest) async throws -> Data? {
        guard let serialize = request.originalSerializer?.function ?? self.originalSerializer else { return body }
        return try await serialize(body, request)
    }

    /// What is done with a download on its way; `nil` where that is nothing.
    func downloadHooks(of request: ImageRequest) -> DownloadHooks? {
        let modifyRequest = request.requestModifier?.function ?? self.requestModifier
        let modifyResponse = request.responseModifier?.function ?? self.responseModifier
        let decrypt = request.decryptor?.function ?? self.decryptor
        guard modifyRequest != nil || modifyResponse != nil || decrypt != nil else { return nil }
        var hooks = DownloadHooks()
        if let modifyRequest { hooks.modifyRequest = { try await modifyRequest($0, request) } }
        if let modifyResponse { hooks.modifyResponse = { try await modifyResponse($0, request) } }
        if let decrypt { hooks.decrypt = { try await decrypt($0, $1, request) } }
        return hooks
    }

    private static func refusal(_ error: any Error, of request: ImageRequest) -> any Error {
        // Of one that gives up by itself the caller would take itself to be cancelled.
        if error is LoadError || error is CancellationError && Task.isCancelled { return error }
        return LoadError(
            code: .refused,
            message: "\(request.displayURL) was refused by the configuration's optionsProcessor: \(error).",
            underlyingError: error
        )
    }
}
