// SPDX-License-Identifier: Apache-2.0

public import TintypeCoding
package import TintypeConcurrency
public import TintypeImage

/// The frames of one image, each decoded when it is requested.
///
/// Counts and durations are known without decoding a pixel. The frame after the last requested one costs one frame. Any
/// other frame costs the frames from the last key frame on. A pool keeps decoded frames. A still image is a source of one
/// frame.
///
/// One decode lane makes the frames. Sources of the same name share it: a frame that two of them request is made once, and
/// stays in the pool when both are gone.
public final class FrameSource: Sendable {
    /// The header of the file.
    public let header: ImageHeader

    private let pool: FramePool
    private let gate: WeightedGate?
    private let decoder: FrameDecoder
    private let timing: AnimationTiming

    /// Opens a source.
    ///
    /// - Parameters:
    ///   - decoder: The decoder, which has read the header and checked the limits.
    ///   - options: The options of the decode, except the frame.
    ///   - rendering: Makes the shown frame of a stored one; `nil` leaves the stored size.
    ///   - firstFrameOnly: Whether an animation becomes the still image of its first frame.
    ///   - lanes: The lanes, one of which does the work.
    ///   - pool: Keeps decoded frames. Other sources may share it.
    ///   - name: Stands for the bytes and the rendering: sources of the same name share frames in a pool. `nil` shares with
    ///     no source.
    ///   - gate: Weighs the memory of each frame while it is decoded.
    package init(
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

    /// The number of frames: 1 for a still image.
    public var frameCount: Int { self.timing.frameCount }
    /// The number of loops, as stored: 0 is forever.
    public var loopCount: Int { self.timing.loopCount }
    /// The duration of each frame in milliseconds; empty for a still image.
    public var durations: [Int] { self.timing.durations }

    /// Returns frame `index` as composited on the canvas, upright and, by default, in sRGB.
    ///
    /// ```swift
    /// for index in 0..<frames.frameCount { show(try await frames.frame(at: index)) }
    /// ```
    ///
    /// - Throws: `CodingError.Code.invalidOptions` when there is no such frame; other `CodingError`s;
    ///   `ImageError` when memory runs out; `CancellationError`.
    public func frame(at index: Int) async throws -> Image {
        guard (0..<self.frameCount).contains(index) else {
            throw CodingError.noFrame(index, of: self.frameCount, self.header.format)
        }
        // A frame in the pool needs no hop.
        if let image = self.pool.image(for: self.decoder.key(index)) { return image }
        guard let gate = self.gate else { return try await self.decoder.frame(at: index) }
        return try await gate.withWeight(self.decoder.byteCount) { try await self.decoder.frame(at: index) }
    }

    /// Decodes all frames one after the other, to be encoded again.
    ///
    /// A still image is one frame.
    ///
    /// The caller holds all of them at once, so they do not count as memory of the loader. To encode them within that memory,
    /// give the source itself to the loader.
    ///
    /// ```swift
    /// let webp = try await loader.encode(frames.content(), as: .webp)
    /// ```
    ///
    /// - Throws: As ``frame(at:)``.
    public func content() async throws -> AnimationContent {
        try await self.content(count: self.frameCount) { try await self.frame(at: $0) }
    }

    /// Decodes the first `count` frames outside the gate, for a caller that has counted them.
    ///
    /// - Throws: As ``frame(at:)``.
    package func contentWithoutGate(count: Int) async throws -> AnimationContent {
        try await self.content(count: min(count, self.frameCount)) { try await self.decoder.frame(at: $0) }
    }

    private func content(
        count: Int,
        _ frame: (Int) async throws -> Image
    ) async throws -> AnimationContent {
        var frames: [AnimationContent.Frame] = []
        for index in 0..<count {
            let milliseconds = index < self.durations.count ? self.durations[index] : 0
            frames.append(AnimationContent.Frame(image: try await frame(index), milliseconds: milliseconds))
        }
        return AnimationContent(frames: frames, loopCount: self.loopCount)
    }

    /// The most bytes of memory that a frame takes at once while it is made.
    package var byteCountOfFrame: Int { self.decoder.byteCount }

    /// Decodes all frames into the pool, or the first ones if it does not hold all.
    ///
    /// ```swift
    /// try await frames.preload()
    /// ```
    ///
    /// - Throws: As ``frame(at:)``.
    public func preload() async throws {
        var byteCount = 0
        for index in 0..<self.frameCount {
            let image = try await self.frame(at: index)
            byteCount += FramePool.cost(of: image)
            // All frames have one size. One more would push the first out.
            guard byteCount + FramePool.cost(of: image) <= self.pool.byteLimit else { return }
        }
    }
}
