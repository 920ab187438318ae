public import TintypeCoding
public import TintypeConcurrency
public import TintypeImage

/// The frames of one picture, decoded one by one when they are asked for.
///
/// Counts and durations are known without decoding a pixel. The frame after the last one that
/// was asked for costs one frame; any other costs the frames from the last key frame on. Decoded
/// frames are kept in a pool. A still picture is a source of one frame.
///
/// Frames are made on the thread of one decode lane. Sources that were given the same name share all of that: a frame
/// that two of them want is made once, and stays in the pool when both are gone.
public final class FrameSource: Sendable {
    /// What the file says about its picture.
    public let header: ImageHeader

    private let pool: FramePool
    private let gate: WeightedGate?
    private let decoder: FrameDecoder
    private let timing: AnimationTiming

    /// Opens a source.
    ///
    /// - Parameters:
    ///   - decoder: Has read the header and checked the limits.
    ///   - options: How frames are decoded; the frame they name is not looked at.
    ///   - rendering: How each frame is brought to a size of its own; `nil` leaves the stored size.
    ///   - firstFrameOnly: Whether an animation is taken for the still picture of its first frame.
    ///   - lanes: One of them does the work.
    ///   - pool: Keeps decoded frames; may be shared with other sources.
    ///   - name: Stands for the bytes and for all that is made of them: sources of the same name share frames in a pool.
    ///     `nil` shares with none.
    ///   - gate: Weighs the memory of each frame while it is decoded.
    public init(
        _ decoder: ImageDecoder,
        options: DecodeOptions = DecodeOptions(),
        rendering: StoredRendering? = nil,
        firstFrameOnly: Bool = false,
        lanes: DecodeLanes,
        pool: FramePool = FramePool(),
        name: String? = nil,
        gate: WeightedGate? = nil
    ) {
        self.gate = gate
        self.header = decoder.header
        self.timing = firstFrameOnly ? AnimationTiming() : decoder.header.animation
        self.pool = pool
        self.decoder = pool.decoder(named: name) {
            FrameDecoder(
                decoder,
                options: options,
                rendering: rendering,
                lane: lanes.leastLoaded,
                pool: pool,
                name: name
            )
        }
        self.decoder.addReader()
    }

    deinit {
        self.decoder.removeReader()
    }

    /// The number of frames: 1 for a still picture.
    public var frameCount: Int { self.timing.frameCount }
    /// How often the frames are shown, as stored: 0 is forever.
    public var loopCount: Int { self.timing.loopCount }
    /// How long each frame is shown, in milliseconds; empty for a still picture.
    public var durations: [Int] { self.timing.durations }

    /// Frame `index` as composited on the canvas, upright and in sRGB unless the options say otherwise.
    ///
    /// - Throws: `CodingError.Code.invalidOptions` when there is no such frame; other `CodingError`s;
    ///   `ImageError` when memory runs out; `CancellationError`.
    public func frame(at index: Int) async throws -> Image {
        guard (0..<self.frameCount).contains(index) else {
            throw CodingError.noFrame(index, of: self.frameCount, self.header.format)
        }
        // A frame that is there needs no hop.
        if let image = self.pool.image(for: self.decoder.key(index)) { return image }
        guard let gate = self.gate else { return try await self.decoder.frame(at: index) }
        return try await gate.withWeight(self.decoder.byteCount) { try await self.decoder.frame(at: index) }
    }

    /// All frames as they are encoded again, decoded one after the other; a still picture is one frame.
    ///
    /// It holds all of them at once: what the limits of the decode let in. The caller holds them, so that they do not
    /// count as memory of the loader. To encode them, give the source itself to the loader, which counts them.
    ///
    /// - Throws: What ``frame(at:)`` throws.
    public func content() async throws -> AnimationContent {
        try await self.content { try await self.frame(at: $0) }
    }

    /// All frames, decoded past the gate: for a caller that has counted them.
    ///
    /// - Throws: What ``frame(at:)`` throws.
    package func contentWithoutGate() async throws -> AnimationContent {
        try await self.content { try await self.decoder.frame(at: $0) }
    }

    private func content(_ frame: (Int) async throws -> Image) async throws -> AnimationContent {
        var frames: [AnimationContent.Frame] = []
        for index in 0..<self.frameCount {
            let milliseconds = index < self.durations.count ? self.durations[index] : 0
            frames.append(AnimationContent.Frame(image: try await frame(index), milliseconds: milliseconds))
        }
        return AnimationContent(frames: frames, loopCount: self.loopCount)
    }

    /// The bytes of memory that one frame takes at most at once while it is made.
    package var byteCountOfFrame: Int { self.decoder.byteCount }

    /// Decodes all frames into the pool, or the first ones where it does not hold all.
    ///
    /// - Throws: What ``frame(at:)`` throws.
    public func preload() async throws {
        var byteCount = 0
        for index in 0..<self.frameCount {
            let image = try await self.frame(at: index)
            byteCount += FramePool.cost(of: image)
            // All frames are of a size. One more would push the first out.
            guard byteCount + FramePool.cost(of: image) <= self.pool.byteLimit else { return }
        }
    }
}
