public import TintypeConcurrency
public import TintypeImage

/// The frames of one picture, decoded one by one when they are asked for.
///
/// Counts and durations are known without decoding a pixel. The frame after the last one that
/// was asked for costs one frame; any other costs the frames from the last key frame on. Decoded
/// frames are kept in a pool. A still picture is a source of one frame.
///
/// An actor on the thread of one decode lane, so that frames never block the cooperative pool.
public actor FrameSource {
    /// What the file says about its picture.
    public nonisolated let header: ImageHeader

    private nonisolated let lane: DecodeLane
    public nonisolated var unownedExecutor: UnownedSerialExecutor { self.lane.unownedExecutor }

    private nonisolated let pool: FramePool
    private nonisolated let gate: WeightedGate?
    private nonisolated let decoder: ImageDecoder
    private nonisolated let options: DecodeOptions
    private var compositor: FrameCompositor?

    /// Opens a source.
    ///
    /// - Parameters:
    ///   - decoder: Has read the header and checked the limits.
    ///   - options: How frames are decoded; the frame they name is not looked at.
    ///   - lanes: One of them does the work.
    ///   - pool: Keeps decoded frames; may be shared with other sources.
    ///   - gate: Weighs the memory of each frame while it is decoded.
    public init(
        _ decoder: ImageDecoder,
        options: DecodeOptions = DecodeOptions(),
        lanes: DecodeLanes,
        pool: FramePool = FramePool(),
        gate: WeightedGate? = nil
    ) {
        self.gate = gate
        self.header = decoder.header
        self.decoder = decoder
        self.options = options
        self.lane = lanes.leastLoaded
        self.pool = pool
    }

    deinit {
        self.pool.removeAll(of: ObjectIdentifier(self))
    }

    /// The number of frames: 1 for a still picture.
    public nonisolated var frameCount: Int { self.header.animation.frameCount }
    /// How often the frames are shown, as stored: 0 is forever.
    public nonisolated var loopCount: Int { self.header.animation.loopCount }
    /// How long each frame is shown, in milliseconds; empty for a still picture.
    public nonisolated var durations: [Int] { self.header.animation.durations }

    /// Frame `index` as composited on the canvas, upright and in sRGB unless the options say otherwise.
    ///
    /// - Throws: `CodingError.Code.invalidOptions` when there is no such frame; other `CodingError`s;
    ///   `ImageError` when memory runs out; `CancellationError`.
    public nonisolated func frame(at index: Int) async throws -> Image {
        // A frame that is there needs no hop.
        if let image = self.pool.image(for: self.key(index)) { return image }
        guard let gate = self.gate else { return try await self.decode(index) }
        let weight = self.decoder.byteCount(for: self.frameCount > 1 ? .frame : .picture, options: self.options)
        return try await gate.withWeight(weight) { try await self.decode(index) }
    }

    private nonisolated func key(_ index: Int) -> FramePool.Key {
        FramePool.Key(source: ObjectIdentifier(self), index: index)
    }

    private func decode(_ index: Int) throws -> Image {
        try Task.checkCancellation()
        if let image = self.pool.image(for: self.key(index)) { return image }
        guard (0..<self.frameCount).contains(index) else {
            throw CodingError.noFrame(index, of: self.header.animation.frameCount, self.header.format)
        }
        let image = try self.decoder.finish(try self.composited(index), options: self.options)
        self.pool.insert(image, for: self.key(index))
        return image
    }

    private func composited(_ index: Int) throws -> Image {
        if self.compositor == nil, let reader = try self.decoder.frameReader(options: self.options) {
            self.compositor = try FrameCompositor(reader, limits: self.options.limits, format: self.header.format)
        }
        guard let compositor = self.compositor else {
            var options = self.options
            options.frame = index
            return try self.decoder.decodeStored(options: options).image
        }
        return Image(
            pixels: try compositor.frame(at: index),
            orientation: self.header.orientation,
            sourceFormat: self.header.format
        )
    }
}
