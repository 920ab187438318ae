// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Encodes count in the memory gate like decodes.
@Suite(.waiting, .timeLimit(.minutes(5))) struct EncodeMemoryTests {
    private static func image() throws -> Image { Image(pixels: try .smooth(.rgb8, width: 64, height: 64)) }

    private static func pipeline(
        _ coder: HeavyCoder,
        gate: WeightedGate = WeightedGate(capacity: 100),
        memory: MemoryBudget = MemoryBudget()
    ) -> EncodePipeline {
        let lanes = GatedLanes(DecodeLanes(count: 4), gate: gate, memory: memory, usesIdleLanes: true)
        return EncodePipeline(registry: CoderRegistry(coders: [coder]), lanes: lanes)
    }

    @Test(arguments: [(30, 3), (50, 2), (60, 1), (1_000_000, 1)])
    func `encodes run side by side as far as the gate has room for them`(byteCount: Int, count: Int) async throws {
        let coder = HeavyCoder(byteCount: byteCount)
        let gate = WeightedGate(capacity: 100)
        let pipeline = Self.pipeline(coder, gate: gate)
        let image = try Self.image()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<12 {
                group.addTask {
                    if index.isMultiple(of: 2) {
                        _ = try await pipeline.encode(image, as: .png, options: .init(), maximumSide: nil)
                    } else {
                        let frames = [AnimationContent.Frame(image: image, milliseconds: 0)]
                        let animation = AnimationContent(frames: frames)
                        _ = try await pipeline.encode(animation, as: .png, options: .init())
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(coder.mostAtOnce <= count)
        #expect(coder.count == 12)
        #expect(gate.usedWeight == 0)
    }

    @Test func `a turn and a resize before an encode count, too`() async throws {
        let gate = WeightedGate(capacity: 64 * 64 * 3)
        let pipeline = Self.pipeline(HeavyCoder(byteCount: 10), gate: gate)
        let image = Image(pixels: try .smooth(.rgb8, width: 64, height: 64), orientation: .right)
        var place: WeightedGate.Place? = try await gate.place(for: 64 * 64 * 2)
        let waiting = Task { try await pipeline.encode(image, as: .png, options: .init(), maximumSide: 32) }
        await until { gate.waiterCount == 1 }
        withExtendedLifetime(place) {}
        place = nil
        #expect(try await waiting.value.isEmpty)
    }

    @Test func `an encode that the cgroup has no room for is refused`() async throws {
        let folder = try TemporaryDirectory()
        let membership = try folder.write(Data("0::/group\n".utf8), to: "cgroup")
        try FileManager.default.createDirectory(atPath: folder.path(of: "group"), withIntermediateDirectories: true)
        try folder.write(Data("\(1 << 30)\n".utf8), to: "group/memory.max")
        let memory = MemoryBudget(membershipPath: membership, mountPath: folder.path, physicalByteCount: 1 << 40)
        let image = try Self.image()
        let large = Self.pipeline(HeavyCoder(byteCount: 1 << 30), memory: memory)
        let error = await #expect(throws: ImageError.self) {
            try await large.encode(image, as: .png, options: .init(), maximumSide: nil)
        }
        #expect(error?.code == .outOfMemory)
        let small = Self.pipeline(HeavyCoder(byteCount: 1 << 20), memory: memory)
        #expect(try await small.encode(image, as: .png, options: .init(), maximumSide: nil).isEmpty)
    }

    @Test func `the frames of a source are counted with the encode`() async throws {
        let loader = try LoaderFixture().makeLoader { $0.coders = CoderRegistry() }
        let frames = try (0..<3).map {
            AnimationContent.Frame(
                image: Image(pixels: try .noise(.rgb8, width: 40, height: 30, seed: UInt64($0))),
                milliseconds: 100
            )
        }
        let file = try await loader.encode(AnimationContent(frames: frames), as: .gif)
        let folder = try TemporaryDirectory()
        let url = URL(filePath: try folder.write(file, to: "a.gif"))
        let source = try await loader.frames(for: ImageRequest(url: url))
        let copy = try await loader.encode(source, as: .png)
        let decoder = try ImageDecoder(copy, registry: CoderRegistry())
        #expect(decoder.header.animation.frameCount == 3)
        // The first frame enters the gate alone. The encode then enters with all frames, and needs more than the gate
        // holds.
        let coder = HeavyCoder(byteCount: 10)
        let gate = WeightedGate(capacity: 40 * 30 * 4)
        let pipeline = Self.pipeline(coder, gate: gate)
        var place: WeightedGate.Place? = try await gate.place(for: 1)
        let waiting = Task { try await pipeline.encode(source, as: .png, options: .init()) }
        await until { gate.waiterCount == 1 }
        #expect(coder.count == 0)
        withExtendedLifetime(place) {}
        place = nil
        #expect(try await waiting.value.isEmpty)
        #expect(gate.usedWeight == 0)
    }

    @Test func `a caller that is cancelled leaves an encode at once`() async throws {
        let latch = Latch()
        let coder = HeavyCoder(byteCount: 10, heldBy: latch)
        let loader = try LoaderFixture().makeLoader { $0.coders = CoderRegistry(coders: [coder]) }
        let image = try Self.image()
        let task = Task { try await loader.encode(image, as: .png) }
        await until { coder.count == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        latch.open()
    }
}

/// A coder that claims to need `byteCount` bytes, and counts the encodes that run at once.
private final class HeavyCoder: ImageCoder {
    private struct State {
        var count = 0
        var running = 0
        var mostAtOnce = 0
    }

    private let byteCount: Int
    private let latch: Latch?
    private let state = Locked(State())

    init(byteCount: Int, heldBy latch: Latch? = nil) {
        self.byteCount = byteCount
        self.latch = latch
    }

    var count: Int { self.state.withLock { $0.count } }
    var mostAtOnce: Int { self.state.withLock { $0.mostAtOnce } }
    var decodableFormats: Set<ImageFormat> { [] }
    var encodableFormats: Set<ImageFormat> { [.png] }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        try PNGCoder().open(data, limits: limits)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { self.encode() }

    func encode(_ animation: AnimationContent, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        self.encode()
    }

    func encodingByteCount(
        of layout: PixelLayout,
        frameCount: Int?,
        as format: ImageFormat,
        options: EncodeOptions
    ) -> Int { self.byteCount }

    private func encode() -> Data {
        self.state.withLock { state in
            state.count += 1
            state.running += 1
            state.mostAtOnce = max(state.mostAtOnce, state.running)
        }
        self.latch?.wait()
        // Give other encodes that may run the time to begin.
        for _ in 0..<1_000 { sched_yield() }
        self.state.withLock { $0.running -= 1 }
        return Data()
    }
}
