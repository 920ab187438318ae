// SPDX-License-Identifier: Apache-2.0

import TintypeCaching
import TintypeFlights
import TintypeImage
import TintypeRendering
import TintypeRequests

/// The making of an image of its bytes.
///
/// Loads that got the bytes together share a decode, and the transforms with which their pipelines begin.
struct ImageRendering: Sendable {
    let loader: LoaderReference
    let request: ImageRequest
    let flight: FlightState

    private var decoding: DecodePipeline { self.loader.services.decoding }

    /// Returns the image of `bytes`.
    func image(of bytes: Body) async throws -> DecodePipeline.MadeImage {
        guard let part = bytes.sharing, let id = bytes.flightID else {
            return try await bytes.decoded(for: self.request, by: self.decoding, self.flight.record)
        }
        defer { part.end() }
        let (decoding, request, record) = (self.decoding, self.request, self.flight.record)
        return try await bytes.working {
            guard let planned = try await record.timing(\.lane, { try await part.plan(by: decoding) }) else {
                // The load went another way, which led nowhere: an entry on disk was damaged or removed.
                return try await decoding.image(from: bytes.data, for: request.renderingRequest, record)
            }
            let plan = planned.plan
            guard let share = planned.share, let decoded = try await self.firstStep(of: share, part.sharing, id) else {
                // A load that waits for memory must keep none for itself.
                part.end()
                return try await decoding.carryOut(plan, record)
            }
            part.end()
            defer { withExtendedLifetime(decoded) {} }
            var step = decoded
            for count in share.transformCounts {
                let part = plan.partKey(count)
                let key = RequestKeys.step(
                    share.layout,
                    of: request,
                    decoding: request.renderingRequest.decodingName,
                    broughtBy: id,
                    part: part
                )
                step = try await self.shared(key) { [step] record in
                    // An earlier flight may have ended.
                    if let made = decoded[part] { return made }
                    let made = try await decoding.step(of: step, by: plan, transformCount: count, record)
                    decoded[part] = made
                    return made
                }
            }
            return try await decoding.image(of: step, by: plan, record)
        }
    }

    /// Returns the result of the codec for several images, from a decode that they share; `nil` if there is no memory for all
    /// of them.
    ///
    /// The memory of the decode counts all images that are made of it, so that no other load can join it.
    private func firstStep(
        of share: DecodeSharing.Share,
        _ sharing: DecodeSharing,
        _ id: FlightTable.ID
    ) async throws -> DecodePipeline.SharedStep? {
        let decoding = self.decoding
        let key = RequestKeys.step(
            share.layout,
            of: self.request,
            decoding: self.request.renderingRequest.decodingName,
            broughtBy: id
        )
        do {
            return try await self.shared(key) { record in
                // An earlier flight may have ended.
                if let result = sharing.result(of: share) { return result }
                let result = try await decoding.step(of: share, record)
                sharing.keep(result, of: share)
                return result
            }
        } catch let error as ImageError where error.code == .outOfMemory {
            return nil
        }
    }

    /// Returns a part of the work that is done once for all images of the same bytes that need it.
    private func shared(
        _ key: CacheKey,
        _ work: @escaping @Sendable (LoadRecord) async throws -> DecodePipeline.SharedStep
    ) async throws -> DecodePipeline.SharedStep {
        let source = self.request.sourceKey
        let product = FlightTable.Product(kind: .decode, key: key, source: source, origin: source)
        let plan = FlightPlan(product: product) { try await work($0.record) }
        return try await self.loader.result(of: plan, interest: .flight(self.flight.id))
    }
}

extension Body {
    /// Returns the image that `request` describes.
    func decoded(
        for request: ImageRequest,
        by decoding: DecodePipeline,
        _ record: LoadRecord? = nil
    ) async throws -> DecodePipeline.MadeImage {
        try await self.working { try await decoding.image(from: self.data, for: request.renderingRequest, record) }
    }

    /// Counts the bytes as bytes at work: a decode never waits for the byte budget, so they are certain to be released.
    func working<Result>(_ work: () async throws -> Result) async rethrows -> Result {
        self.claim?.beginWork()
        defer { self.claim?.endWork() }
        return try await work()
    }
}

extension DecodePipeline.SharedStep: FlightOutput {}

extension ImageRequest {
    /// The part of the request for the renderer.
    var renderingRequest: RenderingRequest {
        let rendering = self.rendering
        return RenderingRequest(
            thumbnail: rendering.thumbnail,
            transforms: rendering.transforms,
            scaleDownLimit: rendering.scaleDownLimit,
            scale: self.imageScale,
            coder: rendering.coder?.value,
            coderName: rendering.coder?.name,
            limits: self.transport.decodingLimits,
            allowsTruncated: self.options.contains(.allowTruncated),
            keepsColorProfile: self.options.contains(.keepColorProfile),
            firstFrameOnly: self.options.contains(.firstFrameOnly)
        )
    }
}
