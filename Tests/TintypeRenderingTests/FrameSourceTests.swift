// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding
@testable import TintypeRendering

/// The frames that sources share and store.
@Suite(.waiting, .timeLimit(.minutes(5))) struct FrameSourceTests {
    private static let frameCount = 12

    private let lanes = DecodeLanes(count: 2)
    private let frames: ScriptedFrames

    init() throws {
        // Each frame is drawn over all frames before it.
        let frame = AnimationFrame(left: 2, top: 2, width: 12, height: 8)
        let size = PixelSize(width: 16, height: 12)
        self.frames = try ScriptedFrames(canvas: size, frames: Array(repeating: frame, count: Self.frameCount))
    }

    private func makeSource(
        pool: FramePool,
        name: String? = "a",
        rendering: StoredRendering? = nil,
        firstFrameOnly: Bool = false,
        gate: WeightedGate? = nil
    ) throws -> FrameSource {
        let coder = SharedFramesCoder(frames: self.frames)
        return FrameSource(
            try ImageDecoder(Data([1]), registry: CoderRegistry(), coder: coder),
            rendering: rendering,
            firstFrameOnly: firstFrameOnly,
            lanes: self.lanes,
            pool: pool,
            name: name,
            gate: gate
        )
    }

    private static func readAll(_ source: FrameSource) async throws -> [Image] {
        var images: [Image] = []
        for index in 0..<source.frameCount { images.append(try await source.frame(at: index)) }
        return images
    }

    @Test func `two readers of one animation decode each frame once`() async throws {
        let pool = FramePool()
        let sources = [try self.makeSource(pool: pool), try self.makeSource(pool: pool)]
        async let first = Self.readAll(sources[0])
        async let second = Self.readAll(sources[1])
        let (one, other) = try await (first, second)
        #expect(self.frames.decodeCount == Self.frameCount)
        #expect(zip(one, other).allSatisfy { $0.pixels === $1.pixels })
        #expect(pool.frameCount == Self.frameCount)
    }

    @Test func `readers in any order get the frames that one gets in turn`() async throws {
        let alone = try await Self.readAll(try self.makeSource(pool: FramePool(byteLimit: 0), name: nil))
        let pool = FramePool(byteLimit: 0)
        let sources = [
            try self.makeSource(pool: pool), try self.makeSource(pool: pool), try self.makeSource(pool: pool),
        ]
        for (place, index) in [3, 1, 11, 0, 7, 8, 4, 2, 9, 10, 10, 5].enumerated() {
            let frame = try await sources[place % 3].frame(at: index)
            #expect(frame.pixels.samples == alone[index].pixels.samples, "frame \(index)")
        }
    }

    @Test func `frames of a name stay when their readers are gone, others go with them`() async throws {
        let pool = FramePool()
        _ = try await self.makeSource(pool: pool).frame(at: 0)
        #expect(pool.frameCount == 1)
        _ = try await self.makeSource(pool: pool).frame(at: 0)
        #expect(self.frames.decodeCount == 1)
        _ = try await self.makeSource(pool: pool, name: "b").frame(at: 0)
        #expect(pool.frameCount == 2)
        _ = try await self.makeSource(pool: pool, name: nil).frame(at: 0)
        await until { pool.frameCount == 2 }
        #expect(self.frames.decodeCount == 3)
    }

    @Test func `readers at different places do not make each other begin anew`() async throws {
        let pool = FramePool(byteLimit: 0)
        let (ahead, behind) = (try self.makeSource(pool: pool), try self.makeSource(pool: pool))
        for index in 0..<(Self.frameCount + 4) {
            if index < Self.frameCount { _ = try await ahead.frame(at: index) }
            if index >= 4 { _ = try await behind.frame(at: index - 4) }
        }
        // The reader ahead still has the last frame on its canvas.
        #expect(self.frames.decodeCount == 2 * Self.frameCount - 1)
    }

    @Test func `frames are brought to a size by themselves, and counted by it`() async throws {
        let pool = FramePool()
        let rendering = StoredRendering(
            sufficientSize: PixelSize(width: 8, height: 6),
            size: PixelSize(width: 4, height: 3),
            orientation: .up,
            byteCount: { _ in 0 },
            resize: { stored in
                let pixels = try PixelBuffer.make(.rgba8, width: 4, height: 3) { column, row, channel in
                    UInt8(stored.pixels.sample(column * 4, row * 4, channel))
                }
                return stored.replacingPixels(pixels, orientation: stored.orientation)
            }
        )
        let small = try self.makeSource(pool: pool, name: "small", rendering: rendering)
        let whole = try self.makeSource(pool: FramePool(), name: "whole")
        for index in 0..<Self.frameCount {
            let (frame, stored) = (try await small.frame(at: index), try await whole.frame(at: index))
            #expect((frame.width, frame.height) == (4, 3))
            #expect(frame.pixels.sample(1, 1, 0) == stored.pixels.sample(4, 4, 0))
        }
        #expect(
            pool.byteCount == Self.frameCount * (try PixelLayout(format: .rgba8, width: 4, height: 3).byteCount + 512)
        )
    }

    @Test func `the first frame alone is a still`() async throws {
        let source = try self.makeSource(pool: FramePool(), firstFrameOnly: true)
        #expect((source.frameCount, source.loopCount, source.durations) == (1, 1, []))
        _ = try await source.frame(at: 0)
        let error = await #expect(throws: CodingError.self) { try await source.frame(at: 1) }
        #expect(error?.code == .invalidOptions)
        #expect(try await AnimationPlayer(source).reduce(into: []) { $0.append($1.index) } == [0])
    }

    @Test func `a reader that lists fewer frames than the header is an error for those that are missing`() async throws
    {
        let decoder = try ImageDecoder(
            Data([1]),
            registry: CoderRegistry(),
            coder: SharedFramesCoder(frames: self.frames, announcedCount: Self.frameCount + 2)
        )
        let source = FrameSource(decoder, lanes: self.lanes)
        for index in [Self.frameCount + 1, 3, Self.frameCount, Self.frameCount - 1] {
            if index < Self.frameCount {
                _ = try await source.frame(at: index)
            } else {
                let error = await #expect(throws: CodingError.self) { try await source.frame(at: index) }
                #expect(error?.code == .corrupt)
            }
        }
    }

    @Test func `all frames are there after they were preloaded, or as many as the pool holds`() async throws {
        let pool = FramePool()
        try await self.makeSource(pool: pool).preload()
        #expect(pool.frameCount == Self.frameCount && pool.holds(Self.frameCount, named: "a"))
        let one = pool.byteCount / Self.frameCount
        let small = FramePool(byteLimit: 5 * one)
        try await self.makeSource(pool: small).preload()
        #expect(small.frameCount == 5 && small.holds(5, named: "a") && !small.holds(6, named: "a"))
        #expect(self.frames.decodeCount == Self.frameCount + 5)
    }

    @Test func `a frame waits for the memory gate`() async throws {
        let gate = WeightedGate(capacity: 10_000)
        let place = try #require(gate.placeIfFree(for: 10_000))
        let source = try self.makeSource(pool: FramePool(), gate: gate)
        let reader = Task { try await source.frame(at: 0).width }
        await until { gate.waiterCount == 1 }
        #expect(self.frames.decodeCount == 0)
        withExtendedLifetime(place) {}
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
    }

    @Test func `the pool counts what a frame takes besides its pixels`() throws {
        let pool = FramePool(byteLimit: 100_000)
        let source = FramePool()
        let image = Image(pixels: try .make(.rgba8, width: 1, height: 1) { _, _, _ in 1 })
        for index in 0..<10_000 {
            pool.insert(image, for: .init(source: .object(ObjectIdentifier(source)), index: index))
        }
        #expect(pool.frameCount < 200)
        #expect(pool.byteCount <= 100_000)
        #expect(pool.image(for: .init(source: .object(ObjectIdentifier(source)), index: 9_999)) != nil)
        #expect(pool.image(for: .init(source: .object(ObjectIdentifier(source)), index: 0)) == nil)
        pool.removeAll(of: .object(ObjectIdentifier(source)))
        #expect((pool.frameCount, pool.byteCount) == (0, 0))
    }
}

/// A coder that gives the same frames to every caller.
private struct SharedFramesCoder: ImageCoder {
    let frames: ScriptedFrames
    /// The number of frames in the header, or `nil` for the real number.
    var announcedCount: Int?
    let decodableFormats: Set<ImageFormat> = [.gif]
    let encodableFormats: Set<ImageFormat> = []

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        SharedFramesImage(frames: self.frames, frameCount: self.announcedCount ?? self.frames.frames.count)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
}

private struct SharedFramesImage: EncodedImage {
    let frames: ScriptedFrames
    let frameCount: Int

    var header: ImageHeader {
        let canvas = self.frames.canvas
        var header = ImageHeader(format: .gif, pixelWidth: canvas.width, pixelHeight: canvas.height)
        for _ in 0..<self.frameCount { header.animation.appendFrame(milliseconds: 100) }
        return header
    }

    func decode(options: DecodeOptions) throws -> DecodedImage { throw CodingError.truncated(.gif) }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? { self.frames }
}
