// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeRequests

/// The functions of the program that a load calls, from the configuration and from the request.
final class ProgramHooks: Sendable {
    private let configuration: LoaderActor.Configuration
    /// Whether hooks change requests before the first look-up.
    let changeRequests: Bool

    init(_ configuration: LoaderActor.Configuration) {
        var hooks = configuration
        // A closure or an object of the program may own the loader, so keep only the functions of this type.
        (hooks.cache, hooks.fetcher, hooks.fetcherWrapper, hooks.variantEncoder) = (nil, nil, nil, nil)
        (hooks.tiers, hooks.observers) = ([], [])
        self.configuration = hooks
        self.changeRequests =
            configuration.keyFilter != nil || configuration.credentials != nil || configuration.optionsProcessor != nil
    }

    /// Returns the request to load instead of `request`.
    ///
    /// - Throws: `LoadError`, with the code `refused` for other errors of the processor; `CancellationError` if the
    ///   task was cancelled.
    func processed(_ request: ImageRequest) async throws -> ImageRequest {
        var request = request
        if let optionsProcessor = self.configuration.optionsProcessor {
            do {
                request = try await optionsProcessor(request)
            } catch {
                throw Self.refusal(error, of: request)
            }
        }
        if request.source.credentials == nil, let credentials = self.configuration.credentials {
            request.source.credentials = credentials
        }
        if request.cacheKey == nil, let key = self.configuration.keyFilter?(request) { request.cacheKey = key }
        return request
    }

    /// Checks that the load may ask its origin.
    ///
    /// - Throws: `LoadError.Code.downloadRefused`.
    func checkDownload(of request: ImageRequest) async throws {
        guard let shouldDownload = self.configuration.shouldDownload, await !shouldDownload(request) else { return }
        throw LoadError(
            code: .downloadRefused,
            message:
                "\(request.displayURL) is not in the cache, and the configuration's shouldDownload keeps it from being "
                + "downloaded."
        )
    }

    /// Returns whether the cache may store a response and its images.
    func mayStore(_ metadata: EntryMetadata, of request: ImageRequest) async -> Bool {
        guard let shouldStore = self.configuration.shouldStore else { return true }
        return await shouldStore(metadata, request)
    }

    /// Returns whether the loader remembers a failure.
    func mayRemember(_ error: LoadError, of request: ImageRequest) async -> Bool {
        guard let shouldRememberFailure = self.configuration.shouldRememberFailure else { return true }
        return await shouldRememberFailure(error, request)
    }

    /// Returns the bytes of `body` to store on disk; `nil` for none.
    func serialized(_ body: Data, of request: ImageRequest) async throws -> Data? {
        let serialize = request.caching.originalSerializer?.value ?? self.configuration.originalSerializer
        guard let serialize else { return body }
        return try await serialize(body, request)
    }

    /// Returns the hooks of a download for `request`; `nil` without any.
    func downloadHooks(of request: ImageRequest) -> DownloadHooks? {
        self.configuration.hooks.downloadHooks(of: request)
    }

    private static func refusal(_ error: any Error, of request: ImageRequest) -> any Error {
        // If a hook throws `CancellationError` by itself, its caller must not mistake that for its own cancellation.
        if error is LoadError || error is CancellationError && Task.isCancelled { return error }
        return LoadError(
            code: .refused,
            message: "\(request.displayURL) was refused by the configuration's optionsProcessor: \(error).",
            underlyingError: error
        )
    }
}
