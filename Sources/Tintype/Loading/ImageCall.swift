// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeFlights
import TintypeRequests

/// A caller's load of an image that the memory does not have: the flight, alternatives and the fallback, and what the caller
/// asks for in addition to the image.
struct ImageCall: Sendable {
    let loader: LoaderActor
    let request: ImageRequest
    /// Receives the updates of the flight.
    var observer: FlightState.Observer?

    /// Loads the image from the request's source, or one of its alternatives.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    func response() async throws -> ImageResponse {
        guard !self.request.alternatives.isEmpty || self.request.fallback != nil else {
            return try await self.ownResponse()
        }
        do {
            let result = try await AlternativeLoad.first(of: self.request) { source, isFirst in
                if isFirst { return try await self.ownResponse() }
                let source = try await self.loader.admitted(source)
                if let response = try await self.loader.memoryResponse(for: source) { return response }
                return try await ImageCall(loader: self.loader, request: source, observer: self.observer).response()
            }
            var response = result.value
            response.alternative = result.alternative
            return response
        } catch let error as LoadError {
            let fallback = try AlternativeLoad.fallback(of: self.request, after: error)
            var response = ImageResponse(image: fallback, source: .fallback, metadata: EntryMetadata())
            response.failure = error
            return response
        }
    }

    /// Loads the image, and reports the cached image or a preview that is there before.
    func response(reporting report: @escaping @Sendable (LoadUpdate) -> Void) async throws -> ImageResponse {
        let plan = self.loader.services.rules.plan(for: self.request)
        if plan.policy == .revalidate, let cached = try await self.cachedResponse() {
            report(.cached(cached))
        } else if let preview = self.loader.memory.keptPreview(for: self.request) {
            report(.preview(preview))
        }
        return try await ImageCall(loader: self.loader, request: self.request, observer: .caller(report)).response()
    }

    private var demand: Demand { Demand(self.request, self.loader.services.rules) }

    private func ownResponse() async throws -> ImageResponse {
        do {
            let response = try await self.loader.reference.image(
                for: self.request,
                mayServeStale: true,
                interest: .caller(self.demand),
                observer: self.observer
            )
            if response.revalidation == .inBackground { await self.loader.revalidateImage(of: self.request) }
            let complete = try await self.withData(response)
            return try await self.loader.withFrames(complete, for: self.request).finished(for: self.request)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// Adds the encoded bytes if the request asks for them.
    ///
    /// The flight has loaded them, unless that failed or the request joined at the very end.
    private func withData(_ response: ImageResponse) async throws -> ImageResponse {
        guard self.request.options.contains(.keepData), response.data == nil else { return response }
        let bytes = try await self.loader.reference.bytes(
            for: self.request,
            mayServeStale: true,
            interest: .caller(self.demand)
        )
        guard bytes.metadata.bodyDigest == response.metadata.bodyDigest else {
            // Another body has come since the image was made.
            let image = try await bytes.decoded(for: self.request, by: self.loader.services.decoding)
            return ImageResponse(image, bytes)
        }
        var response = response
        response.data = bytes.data
        return response
    }

    /// Returns the image that the caches have, whatever its age.
    private func cachedResponse() async throws -> ImageResponse? {
        var request = self.request
        request.cachePolicy = .cacheOnly
        request.alternatives = []
        request.fallback = nil
        do {
            return try await ImageCall(loader: self.loader, request: request).response()
        } catch is LoadError {
            return nil
        }
    }
}
