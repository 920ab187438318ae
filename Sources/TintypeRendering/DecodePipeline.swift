package import FoundationEssentials
package import TintypeCoding
package import TintypeConcurrency
import TintypeErrors
package import TintypeImage
import TintypeTransforms

/// Bytes to picture, on one lane, or with those that have nothing to do: header, limits, memory gate, decode, resize, turn.
package struct DecodePipeline: Sendable {
    package let registry: CoderRegistry
    package let lanes: DecodeLanes
    /// Bounds the bytes of pixels that all decodes hold together.
    package let gate: WeightedGate
    /// Bounds the memory of previews: they last as long as their downloads, and must not keep decodes from beginning.
    let previewGate: WeightedGate
    package let limits: DecodingLimits
    /// The memory that the process may use.
    let memory: MemoryBudget
    /// The bytes from which on work has to find room in the cgroup, too: reading that takes as long as writing half a
    /// megabyte.
    private static let largeByteCount = 64 << 20
    /// Whether lanes that have nothing to do help with large pictures.
    let usesIdleLanes: Bool
    /// Previews in the making: a picture does not wait for the lane of its own.
    package let previews = TaskOwner()
    /// Encodes that a caller waits for itself.
    private let encodes = Coalescer<UUID, Data, Never>()

    package init(
        registry: CoderRegistry,
        lanes: DecodeLanes,
        gate: WeightedGate,
        previewGate: WeightedGate,
        limits: DecodingLimits,
        memory: MemoryBudget = MemoryBudget(),
        usesIdleLanes: Bool
    ) {
        self.registry = registry
        self.lanes = lanes
        self.gate = gate
        self.previewGate = previewGate
        self.limits = limits
        self.memory = memory
        self.usesIdleLanes = usesIdleLanes
    }

    private func limits(of request: RenderingRequest) -> DecodingLimits {
        request.limits ?? self.limits
    }

    /// Decodes `data` as `request` asks.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func picture(
        from data: Data,
        for request: RenderingRequest,
        _ observer: (any RenderingObserver)? = nil
    ) async throws -> MadePicture {
        let plan = try await self.plan(of: data, for: request, observer)
        return try await self.carryOut(plan, observer)
    }

    /// A picture, and the animation that it stands for.
    package struct MadePicture: Sendable {
        package let image: Image
        /// The frames of the animation; `nil` for a still image.
        package let animation: AnimationTiming?
    }

    /// Decodes a variant that the cache encoded.
    ///
    /// - Throws: `CodingError`, `ImageError`, `CancellationError`.
    package func variant(from data: Data, _ observer: (any RenderingObserver)? = nil) async throws -> Image {
        let plan = try await self.onLane(observer) {
            let decoder = try ImageDecoder(data, registry: self.registry, limits: self.limits)
            return DecodePlan(decoder: decoder, limits: self.limits)
        }
        return try await self.carryOut(plan, observer).image
    }

    /// Runs `work` on a lane, and takes note of the wait for that.
    private func onLane<Result: Sendable>(
        _ observer: (any RenderingObserver)?,
        _ work: @Sendable () throws -> Result
    ) async throws -> Result {
        guard let observer else { return try await self.lanes.run(work) }
        let start = ContinuousClock.now
        return try await self.lanes.run {
            observer.didEnd(.lane, since: start)
            return try work()
        }
    }

    /// How the picture of `request` is to be made of `data`, whose header is read.
    ///
    /// The weight is known only from there, and a lane must not wait for the gate: a decode takes two visits at least, the
    /// first of microseconds.
    ///
    /// - Throws: `CodingError`, `TransformError`, `CancellationError`.
    package func plan(
        of data: Data,
        for request: RenderingRequest,
        _ observer: (any RenderingObserver)? = nil
    ) async throws -> DecodePlan {
        try await self.onLane(observer) {
            let decoder = try self.decoder(of: data, for: request)
            return try DecodePlan(decoder: decoder, request: request, limits: self.limits(of: request))
        }
    }

    /// Plans the images of requests that decode the same bytes in the same way, in one visit to a lane, and divides them
    /// among decodes.
    ///
    /// - Throws: `CodingError`, `CancellationError`; the error of one plan is its result.
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
                capacity: self.gate.capacity
            )
            return plans.reduce(into: [:]) { result, plan in
                result[plan.key] = plan.value.map { DecodeSharing.Plan(plan: $0, share: shares[plan.key]) }
            }
        }
    }

    /// Makes the picture of a plan, once there is room for it.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func carryOut(_ plan: DecodePlan, _ observer: (any RenderingObserver)? = nil) async throws -> MadePicture {
        let byteCount = plan.byteCount
        let start = ContinuousClock.now
        let image = try await self.gate.withWeight(byteCount) {
            observer?.didEnd(.gate, since: start)
            return try await self.onLanes(plan, byteCount, observer) { try $0.decode(observer) }
        }
        return MadePicture(image: image, animation: plan.animation)
    }

    /// Runs a decode on a lane, with the help of idle lanes if the coder can share it with them.
    ///
    /// - Parameters:
    ///   - plan: The plan.
    ///   - byteCount: The memory of the decode, which the gate has admitted; each lane that helps takes more.
    ///   - observer: Receives the wait for the lane.
    ///   - decode: Decodes as the plan that it is given says.
    private func onLanes<Result: Sendable>(
        _ plan: DecodePlan,
        _ byteCount: Int,
        _ observer: (any RenderingObserver)?,
        _ decode: @escaping @Sendable (DecodePlan) throws -> Result
    ) async throws -> Result {
        guard self.usesIdleLanes, self.lanes.idleCount > 1, let (plan, parallel) = plan.parallel() else {
            return try await self.onLane(observer) {
                try self.requireRoom(byteCount)
                return try decode(plan)
            }
        }
        let start = ContinuousClock.now
        return try await self.lanes.runTogether(
            helperCount: parallel.helperCount,
            reserving: { self.gate.placeIfFree(for: parallel.helperByteCount) },
            help: parallel.help,
            {
                observer?.didEnd(.lane, since: start)
                try self.requireRoom(byteCount)
                return try decode(plan)
            }
        )
    }

    /// A part of the work that several images share, and the memory that it takes, until the last of them is made.
    package final class SharedStep: Sendable {
        fileprivate let part: DecodePlan.Part
        fileprivate let place: WeightedGate.Place
        /// What was made of it for several images: as long as one of them holds the step, others find it.
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

    /// Does the part of a plan that plans for other sizes share.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package func step(of share: DecodeSharing.Share, _ observer: (any RenderingObserver)?) async throws -> SharedStep {
        let (plan, byteCount) = (share.plan, share.byteCount)
        let start = ContinuousClock.now
        let place = try await self.gate.place(for: byteCount)
        observer?.didEnd(.gate, since: start)
        let decoded = try await self.onLanes(plan, byteCount, observer) { plan in
            let start = ContinuousClock.now
            defer { observer?.didEnd(.decode, since: start) }
            return try plan.decodeStep()
        }
        return SharedStep(.stored(decoded), place)
    }

    /// Carries out the transforms of a plan that plans with the same ones share, counted with the step.
    ///
    /// - Throws: `TransformError`, `ImageError`, `CancellationError`, or what a program's own transformer throws.
    package func step(
        of step: SharedStep,
        by plan: DecodePlan,
        transformCount: Int,
        _ observer: (any RenderingObserver)?
    ) async throws -> SharedStep {
        let image = try await self.onLane(observer) {
            try plan.image(of: step.part, transformCount: transformCount, observer)
        }
        return SharedStep(.finished(image, transformCount: transformCount), step.place)
    }

    /// Makes the picture of a plan out of a step that it shares: no larger than that, and counted with it.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError`, `CancellationError`.
    package func picture(
        of step: SharedStep,
        by plan: DecodePlan,
        _ observer: (any RenderingObserver)?
    ) async throws -> MadePicture {
        let image = try await self.onLane(observer) { try plan.image(of: step.part, observer) }
        return MadePicture(image: image, animation: plan.animation)
    }

    /// Makes what `request` asks for of the decoded original.
    ///
    /// - Throws: `TransformError`, `ImageError`, `CancellationError`, or what a program's own transformer throws.
    package func picture(
        of original: Image,
        for request: RenderingRequest,
        _ observer: (any RenderingObserver)?
    ) async throws -> Image {
        let (size, limits) = (PixelSize(width: original.width, height: original.height), self.limits(of: request))
        let plan = try DecodePlan.transforms(for: request, size: size, hasAlpha: original.hasAlpha, limits: limits)
        let footprint = try plan.footprint(for: original.pixels.layout)
        let weight = footprint.workingByteCount.saturatingAdded(to: footprint.result.byteCount)
        let start = ContinuousClock.now
        return try await self.gate.withWeight(weight) {
            observer?.didEnd(.gate, since: start)
            return try await self.onLane(observer) {
                let start = ContinuousClock.now
                defer { observer?.didEnd(.transform, since: start) }
                return try plan.image(of: original) { try DecodePlan.check($0, of: size, limits: limits) }
            }
        }
    }

    /// Reads the header with the request's own coder, or the registered ones.
    private func decoder(of data: Data, for request: RenderingRequest) throws -> ImageDecoder {
        let limits = self.limits(of: request)
        return try ImageDecoder(data, registry: self.registry, coder: request.coder, limits: limits)
    }

    /// What the start of `data` says about its picture; the limits are checked.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package func header(of data: Data, for request: RenderingRequest) async throws -> ImageHeader {
        try await self.lanes.run { try self.decoder(of: data, for: request).header }
    }

    /// How and where the picture of `data` was taken, and its blocks of metadata.
    ///
    /// - Throws: `CodingError`, `CancellationError`.
    package func metadata(of data: Data, for request: RenderingRequest) async throws -> ImageMetadata {
        try await self.lanes.run { try self.decoder(of: data, for: request).metadata() }
    }

    /// Decodes the bytes of `mailbox` as `request` asks while they come; at most one preview is in the making.
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
            lanes: self.lanes,
            gate: self.previewGate,
            rendering: { try DecodePlan.rendering(for: request, header: $0, limits: limits) }
        )
        while let bytes = await mailbox.take() {
            if let preview = await decoder.append(bytes), !Task.isCancelled { await show(preview) }
        }
    }

    /// The frames of a picture, at the size that `request` asks for; the limits are checked.
    ///
    /// - Parameters:
    ///   - data: The encoded bytes.
    ///   - name: Stands for the bytes and the request, so that all readers share the frames; `nil` shares with none.
    ///   - request: Says what is made of them.
    ///   - pool: Keeps the frames.
    /// - Returns: A source of frames, none of which is decoded yet.
    /// - Throws: `CodingError`, `TransformError`, `CancellationError`.
    package func frames(
        of data: Data,
        named name: String?,
        for request: RenderingRequest,
        pool: FramePool
    ) async throws -> FrameSource {
        let (decoder, rendering) = try await self.lanes.run {
            let decoder = try self.decoder(of: data, for: request)
            let limits = self.limits(of: request)
            return (decoder, try DecodePlan.rendering(for: request, header: decoder.header, limits: limits))
        }
        return FrameSource(
            decoder,
            options: DecodeOptions(request, limits: self.limits(of: request)),
            rendering: rendering,
            firstFrameOnly: request.firstFrameOnly,
            lanes: self.lanes,
            pool: pool,
            name: name,
            gate: self.gate
        )
    }

    /// Encodes `image` in `format`, once there is room for that.
    ///
    /// Without a format, an image with any transparency becomes a PNG, and others become a JPEG.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    package func encode(
        _ image: Image,
        as format: ImageFormat?,
        options: EncodeOptions,
        maximumSide: Int?,
        _ observer: (any RenderingObserver)? = nil
    ) async throws -> Data {
        let image = try await self.upright(image, maximumSide: maximumSide, observer)
        let format = if let format { format } else { try await self.losslessIfTransparent(image, observer) }
        let coder = try self.registry.coder(encoding: format)
        // The pixels are upright, so the orientation in their EXIF block no longer holds.
        var changed = options
        changed.metadata.exif = options.metadata.exif.map { EXIF.upright($0) }
        let encode = Encode(image: image, coder: coder, format: format, options: changed)
        return try await self.onLane(taking: encode.byteCount, orAtLeast: encode.leastByteCount, observer) { hasRoom in
            let start = ContinuousClock.now
            defer { observer?.didEnd(.encode, since: start) }
            return try encode.run(savingMemory: !hasRoom)
        }
    }

    /// How an upright image is to be encoded.
    private struct Encode: Sendable {
        let image: Image
        let coder: any ImageCoder
        let format: ImageFormat
        let options: EncodeOptions

        /// The bytes that it takes at most at once.
        var byteCount: Int { self.byteCount(of: self.options) }
        /// The same when memory is saved at the cost of time.
        var leastByteCount: Int { self.byteCount(of: self.options.savingMemory) }

        private func byteCount(of options: EncodeOptions) -> Int {
            self.coder
                .encodingByteCount(of: self.image.pixels.layout, frameCount: nil, as: self.format, options: options)
                .saturatingAdded(to: self.image.conversionByteCount)
                .saturatingAdded(to: options.metadata.writingByteCount)
        }

        func run(savingMemory: Bool) throws -> Data {
            let options = savingMemory ? self.options.savingMemory : self.options
            return try self.coder.encode(self.image, as: self.format, options: options)
        }
    }

    /// Runs `encode` for a caller that leaves at once when it is cancelled, as callers of loads do.
    ///
    /// The encode ends, and gives back what it has of the gate, when its codec next asks: libwebp may take a second.
    package func leavingOnCancellation(_ encode: @escaping @Sendable () async throws -> Data) async throws -> Data {
        try await self.encodes.value(for: UUID()) { _ in try await encode() }
    }

    /// Returns `image` upright, and no side longer than `maximumSide`.
    private func upright(_ image: Image, maximumSide: Int?, _ observer: (any RenderingObserver)?) async throws -> Image
    {
        let resize = maximumSide.map { Resize.fit(width: $0, height: $0) }
        guard image.orientation != .up || resize != nil else { return image }
        var byteCount = image.turnByteCount
        if let resize {
            let footprint = try resize.footprint(for: image.pixels.layout)
            byteCount = byteCount.saturatingAdded(to: footprint.workingByteCount)
                .saturatingAdded(to: footprint.result.byteCount)
        }
        return try await self.onLane(taking: byteCount, observer) {
            let image = try image.upright()
            return try resize.map { try image.resized($0) } ?? image
        }
    }

    /// Returns PNG for an image with any transparency, and JPEG for others.
    private func losslessIfTransparent(_ image: Image, _ observer: (any RenderingObserver)?) async throws -> ImageFormat
    {
        guard image.hasAlpha else { return .jpeg }
        return try await self.onLane(observer) { image.hasTransparency } ? .png : .jpeg
    }

    /// Encodes all frames of `frames` in `format`, once there is room for them and for that.
    ///
    /// - Throws: `CodingError`, `TransformError`, `ImageError` when memory runs out, `CancellationError`.
    package func encode(_ frames: FrameSource, as format: ImageFormat, options: EncodeOptions) async throws -> Data {
        let coder = try self.registry.coder(encoding: format)
        // The first frame says how large the others are.
        let first = try await frames.frame(at: 0)
        let encoding = try coder.encodingByteCount(
            of: AnimationContent(
                frames: Array(repeating: .init(image: first, milliseconds: 0), count: frames.frameCount)
            ),
            as: format,
            options: options
        )
        let byteCount = first.pixels.byteCount.saturatingMultiplied(by: frames.frameCount)
            .saturatingAdded(to: max(encoding, frames.byteCountOfFrame))
        return try await self.gate.withWeight(byteCount) {
            try self.requireRoom(byteCount)
            // Whoever is inside the gate must not wait for it: these frames are counted already.
            let animation = try await frames.contentWithoutGate()
            return try await self.lanes.run { try coder.encode(animation, as: format, options: options) }
        }
    }

    /// Encodes `animation` in `format`, once there is room for that.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    package func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions
    ) async throws -> Data {
        let coder = try self.registry.coder(encoding: format)
        let byteCount = try coder.encodingByteCount(of: animation, as: format, options: options)
        return try await self.onLane(taking: byteCount) {
            try coder.encode(animation, as: format, options: options)
        }
    }

    /// Runs `work` on a lane, once there is room for the memory that it takes.
    private func onLane<Result: Sendable>(
        taking byteCount: Int,
        _ observer: (any RenderingObserver)? = nil,
        _ work: @Sendable () throws -> Result
    ) async throws -> Result {
        try await self.onLane(taking: byteCount, orAtLeast: byteCount, observer) { _ in try work() }
    }

    /// Runs `work` on a lane, once there is room for the memory that it takes, and tells it whether the process has that
    /// much; the least that it takes then is there.
    private func onLane<Result: Sendable>(
        taking byteCount: Int,
        orAtLeast leastByteCount: @autoclosure @Sendable () -> Int,
        _ observer: (any RenderingObserver)?,
        _ work: @Sendable (_ hasRoom: Bool) throws -> Result
    ) async throws -> Result {
        let start = ContinuousClock.now
        return try await self.gate.withWeight(byteCount) {
            observer?.didEnd(.gate, since: start)
            return try await self.onLane(observer) {
                let hasRoom = self.hasRoom(for: byteCount)
                if !hasRoom { try self.requireRoom(leastByteCount()) }
                return try work(hasRoom)
            }
        }
    }

    /// Whether the process may take so many bytes: under a limit of its own, and in its cgroup.
    private func hasRoom(for byteCount: Int) -> Bool {
        MemoryRoom.has(byteCount)
            && (byteCount < Self.largeByteCount || self.memory.hasRoom(for: byteCount))
    }

    /// - Throws: `ImageError.Code.outOfMemory` unless the process may take so many bytes.
    private func requireRoom(_ byteCount: Int) throws(ImageError) {
        guard self.hasRoom(for: byteCount) else { throw .outOfMemory(byteCount) }
    }

    /// Changes a JPEG without loss, once there is room for its coefficients.
    ///
    /// - Throws: `CodingError`, `ImageError` when memory runs out, `CancellationError`.
    package func transform(_ data: Data, by transform: JPEGTransform) async throws -> JPEGTransform.Result {
        let plan = try await self.lanes.run { try JPEGTransformPlan(transform, of: data, limits: self.limits) }
        return try await self.onLane(taking: plan.byteCount) { try plan.carryOut() }
    }
}
