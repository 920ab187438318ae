// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeCoding
package import TintypeConcurrency
package import TintypeImage
import TintypeTransforms

/// Makes images of bytes, on lanes and within the memory gate: header, limits, weight, decode, resize, turn.
package struct DecodePipeline: Sendable {
    package let registry: CoderRegistry
    package let lanes: GatedLanes
    package let limits: DecodingLimits
    /// Bounds the memory of previews.
    ///
    /// They last as long as their downloads, and must not keep decodes from beginning.
    private let previewGate: WeightedGate
    /// The tasks that make previews.
    ///
    /// An image does not wait for the lane of its previews.
    package let previews = TaskOwner()

    package init(registry: CoderRegistry, lanes: GatedLanes, previewGate: WeightedGate, limits: DecodingLimits) {
        self.registry = registry
        self.lanes = lanes
        self.previewGate = previewGate
        self.limits = limits
    }

    private func limits(of request: RenderingRequest) -> DecodingLimits {
        request.limits ?? self.limits
    }

    /// Reads the header with the coder of the request, or a registered one.
    private func decoder(of data: Data, for request: RenderingRequest) throws -> ImageDecoder {
        let limits = self.limits(of: request)
        return try ImageDecoder(data, registry: self.registry, coder: request.coder, limits: limits)
    }

    // MARK: One image

    /// An image, and the animation that it stands for.
    package struct MadeImage: Sendable {
        package let image: Image
        /// The frames of the animation; `nil` for a still image.
        package let animation: AnimationTiming?
    }

    /// Decodes `data` as `request` asks.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func image(
        from data: Data,
        for request: RenderingRequest,
        _ observer: (any RenderingObserver)? = nil
    ) async throws -> MadeImage {
        try await self.make(observer) {
            let decoder = try self.decoder(of: data, for: request)
            return try DecodePlan(decoder: decoder, request: request, limits: self.limits(of: request))
        }
    }

    /// Decodes a variant that the cache encoded.
    ///
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`.
    package func variant(from data: Data, _ observer: (any RenderingObserver)? = nil) async throws -> Image {
        try await self.make(observer) {
            let decoder = try ImageDecoder(data, registry: self.registry, limits: self.limits)
            return DecodePlan(decoder: decoder, limits: self.limits)
        }.image
    }

    /// Plans an image in a visit to a lane, and makes it in the same visit if it is small.
    ///
    /// The header gives the weight, and a lane must not wait for the gate. So a larger image takes a second visit.
    private func make(
        _ observer: (any RenderingObserver)?,
        planning makePlan: @Sendable () throws -> DecodePlan
    ) async throws -> MadeImage {
        let (plan, image) = try await self.lanes.run(observer) {
            let plan = try makePlan()
            return (plan, try self.lanes.decodeIfSmall(plan, observer))
        }
        guard let image else { return try await self.carryOut(plan, observer) }
        return MadeImage(image: image, animation: plan.animation)
    }

    /// Makes the image of a plan when there is room for its memory.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func carryOut(
        _ plan: DecodePlan,
        _ observer: (any RenderingObserver)? = nil
    ) async throws -> MadeImage {
        let byteCount = plan.byteCount
        let image = try await self.lanes.withWeight(byteCount, observer) {
            try await self.lanes.run(plan, taking: byteCount, observer) { try $0.decode(observer) }
        }
        return MadeImage(image: image, animation: plan.animation)
    }

    /// Makes the image that `request` asks for from the decoded original.
    ///
    /// - Throws: `TransformError`, `ImageError`, `CancellationError`, or what a program's own transformer throws.
    package func image(
        of original: Image,
        for request: RenderingRequest,
        _ observer: (any RenderingObserver)?
    ) async throws -> Image {
        let (size, limits) = (PixelSize(width: original.width, height: original.height), self.limits(of: request))
        let plan = try request.transformPlan(for: size, hasAlpha: original.hasAlpha, limits: limits)
        let footprint = try plan.footprint(for: original.pixels.layout)
        let byteCount = footprint.workingByteCount.saturatingAdded(to: footprint.result.byteCount)
        return try await self.lanes.run(taking: byteCount, observer) {
            let start = ContinuousClock.now
            defer { observer?.didEnd(.transform, since: start) }
            return try plan.image(of: original) { try limits.checkEnlarging($0, from: size) }
        }
    }

    // MARK: Several images of the same bytes

    /// Plans the images of requests that decode the same bytes in the same way, in one visit to a lane, and divides them
    /// among decodes.
    ///
    /// - Throws: `CodingError`, `CancellationError`. The error of one plan is its result.
    package func plans(
        of data: Data,
        for requests: [DecodeSharing.ID: RenderingRequest]
    ) async throws -> DecodeSharing.Plans {
        guard let first = requests.values.first else { return [:] }
        return try await self.lanes.run {
            let decoder = try self.decoder(of: data, for: first)
            let plans = requests.mapValues { request in
                Result { try DecodePlan(decoder: decoder, request: request, limits: self.limits(of: request)) }
            }
            let shares = DecodeSharing.divide(
                plans.compactMapValues { try? $0.get() },
                byteCount: data.count,
                capacity: self.lanes.gate.capacity
            )
            return plans.reduce(into: [:]) { result, plan in
                result[plan.key] = plan.value.map { DecodeSharing.Plan(plan: $0, share: shares[plan.key]) }
            }
        }
    }

    /// A part of the work that several images share, and its memory until the last of them is made.
    package final class SharedStep: Sendable {
        fileprivate let part: DecodePlan.Part
        fileprivate let place: WeightedGate.Place
        /// The later steps that several images share.
        ///
        /// They are found as long as one of the images holds this step.
        private let made = Locked<[String: SharedStep]>([:])

        fileprivate init(_ part: DecodePlan.Part, _ place: WeightedGate.Place) {
            self.part = part
            self.place = place
        }

        package subscript(key: String) -> SharedStep? {
            get { self.made.withLock { $0[key] } }
            set { self.made.withLock { $0[key] = newValue } }
        }
    }

    /// Carries out the decode that the plans of several sizes share.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package func step(of share: DecodeSharing.Share, _ observer: (any RenderingObserver)?) async throws -> SharedStep {
        let start = ContinuousClock.now
        let place = try await self.lanes.gate.place(for: share.byteCount)
        observer?.didEnd(.gate, since: start)
        let decoded = try await self.lanes.run(share.plan, taking: share.byteCount, observer) { plan in
            let start = ContinuousClock.now
            defer { observer?.didEnd(.decode, since: start) }
            return try plan.decodeStep()
        }
        return SharedStep(.stored(decoded), place)
    }

    /// Carries out the transforms that several plans begin with.
    ///
    /// Their memory counts with the step.
    ///
    /// - Throws: `TransformError`, `ImageError`, `CancellationError`, or what a program's own transformer throws.
    package func step(
        of step: SharedStep,
        by plan: DecodePlan,
        transformCount: Int,
        _ observer: (any RenderingObserver)?
    ) async throws -> SharedStep {
        let image = try await self.lanes.run(observer) {
            try plan.image(of: step.part, transformCount: transformCount, observer)
        }
        return SharedStep(.finished(image, transformCount: transformCount), step.place)
    }

    /// Makes the image of a plan from a step that it shares.
    ///
    /// It is no larger than the step, and its memory counts with that.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func image(
        of step: SharedStep,
        by plan: DecodePlan,
        _ observer: (any RenderingObserver)?
    ) async throws -> MadeImage {
        let image = try await self.lanes.run(observer) { try plan.image(of: step.part, observer) }
        return MadeImage(image: image, animation: plan.animation)
    }

    // MARK: Headers, previews, frames

    /// Reads the header of `data`, and checks the limits.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package func header(of data: Data, for request: RenderingRequest) async throws -> ImageHeader {
        try await self.lanes.run { try self.decoder(of: data, for: request).header }
    }

    /// Reads how and where the image of `data` was taken, and its blocks of metadata.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package func metadata(of data: Data, for request: RenderingRequest) async throws -> ImageMetadata {
        try await self.lanes.run { try self.decoder(of: data, for: request).metadata() }
    }

    /// Decodes the bytes of `mailbox` while they arrive.
    ///
    /// It makes one preview at a time.
    package func showPreviews(
        of mailbox: ByteMailbox,
        for request: RenderingRequest,
        show: @Sendable (Image) async -> Void
    ) async {
        let limits = self.limits(of: request)
        let decoder = PreviewDecoder(
            registry: self.registry,
            coder: request.coder,
            options: DecodeOptions(request, limits: limits),
            lanes: self.lanes.lanes,
            gate: self.previewGate,
            rendering: { try request.storedRendering(header: $0, limits: limits) }
        )
        while let bytes = await mailbox.take() {
            if let preview = await decoder.append(bytes), !Task.isCancelled { await show(preview) }
        }
    }

    /// Opens the frames of an image at the size that `request` asks for, and checks the limits.
    ///
    /// - Parameters:
    ///   - data: The encoded bytes.
    ///   - name: Stands for the bytes and the request, so that all readers share the frames; `nil` shares with none.
    ///   - request: Gives the size and the transforms of the frames.
    ///   - pool: Keeps the frames.
    /// - Returns: A source that has decoded no frame yet.
    /// - Throws: `CodingError`, `TransformError`, `CancellationError`.
    package func frames(
        of data: Data,
        named name: String?,
        for request: RenderingRequest,
        pool: FramePool
    ) async throws -> FrameSource {
        let limits = self.limits(of: request)
        let (decoder, rendering) = try await self.lanes.run {
            let decoder = try self.decoder(of: data, for: request)
            return (decoder, try request.storedRendering(header: decoder.header, limits: limits))
        }
        return FrameSource(
            decoder,
            options: DecodeOptions(request, limits: limits),
            rendering: rendering,
            firstFrameOnly: request.firstFrameOnly,
            lanes: self.lanes.lanes,
            pool: pool,
            name: name,
            gate: self.lanes.gate
        )
    }
}
