import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import TintypeConcurrency
import TintypeImage

@testable import TintypeCoding

@Suite(.waiting, .timeLimit(.minutes(5))) struct AnimationPlayerTests {
    @Test(arguments: [
        (AnimationPlayer.Mode.normal, 1, [0, 1, 2]), (.normal, 2, [0, 1, 2, 0, 1, 2]),
        (.reverse, 2, [2, 1, 0, 2, 1, 0]), (.bounce, 1, [0, 1, 2]), (.bounce, 3, [0, 1, 2, 1, 0, 1, 2]),
    ])
    func framesComeInTheOrderOfTheMode(mode: AnimationPlayer.Mode, loops: Int, expected: [Int]) {
        var state = PlaybackState(frameCount: 3, mode: mode, loopLimit: loops)
        #expect(Array(sequence(state: 0) { _ in state.next() }) == expected)
        #expect(state.next() == nil)
    }

    @Test(arguments: AnimationPlayer.Mode.allCases) func oneFrameIsShownOnceALoop(mode: AnimationPlayer.Mode) {
        var state = PlaybackState(frameCount: 1, mode: mode, loopLimit: 3)
        #expect(Array(sequence(state: 0) { _ in state.next() }) == [0, 0, 0])
    }

    @Test func noLimitPlaysForEver() {
        var state = PlaybackState(frameCount: 2, mode: .normal, loopLimit: 0)
        #expect((0..<1_000).map { _ in state.next() } == (0..<1_000).map { $0 % 2 })
    }

    @Test(arguments: [
        (AnimationPlayer.Mode.normal, 2, [2, 3]), (.normal, 0, [0, 1, 2, 3]), (.reverse, 1, [1, 0]),
        (.reverse, 3, [3, 2, 1, 0]), (.normal, 9, [1, 2, 3]), (.normal, -1, [1, 2, 3]),
    ])
    func seekingMakesAFrameTheNextOne(mode: AnimationPlayer.Mode, target: Int, expected: [Int]) {
        var state = PlaybackState(frameCount: 4, mode: mode, loopLimit: 1)
        _ = state.next()
        state.seek(to: target)
        let rest = Array(sequence(state: 0) { _ in state.next() })
        #expect(rest == (mode == .reverse && target > 3 ? [] : expected))
    }

    /// A source over the two frames of a small animated WebP.
    private func makeSource(pool: FramePool = FramePool()) throws -> FrameSource {
        let coder = ScriptedCoder()
        let decoder = try ImageDecoder(Data([1]), registry: CoderRegistry(), coder: coder)
        return FrameSource(decoder, lanes: DecodeLanes(count: 1), pool: pool)
    }

    @Test func framesWaitAsLongAsTheOneBeforeIsShown() async throws {
        let clock = RecordingClock()
        let player = AnimationPlayer(try self.makeSource(), rate: 2, loopLimit: 2, clock: clock)
        var indices: [Int] = []
        var loops: [Int] = []
        for try await frame in player {
            indices.append(frame.index)
            loops.append(frame.loop)
        }
        #expect(indices == [0, 1, 2, 0, 1, 2])
        #expect(loops == [0, 0, 0, 1, 1, 1])
        // At twice the rate, and none after the last frame's own time.
        #expect(clock.sleeps == [50, 100, 150, 50, 100, 150].map { .milliseconds($0) })
    }

    @Test func aPausedPlayerHoldsItsFrameUntilItIsResumed() async throws {
        let player = AnimationPlayer(try self.makeSource(), loopLimit: 1, clock: RecordingClock())
        player.pause()
        let reader = Task { try await player.reduce(into: []) { $0.append($1.index) } }
        player.seek(to: 1)
        player.resume()
        #expect(try await reader.value == [1, 2])
    }

    @Test func cancellingAPausedReaderEndsIt() async throws {
        let player = AnimationPlayer(try self.makeSource(), clock: RecordingClock())
        player.pause()
        let reader = Task { for try await _ in player {} }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
    }

    @Test func framesComeFromThePoolTheSecondTime() async throws {
        let pool = FramePool()
        let source = try self.makeSource(pool: pool)
        let first = try await source.frame(at: 2)
        #expect(pool.frameCount == 1)
        #expect(try await source.frame(at: 2).pixels === first.pixels)
        await #expect(throws: CodingError.self) { try await source.frame(at: 3) }
    }

    @Test func thePoolKeepsToItsLimitAndDropsTheOldest() async throws {
        let measure = FramePool()
        let measured = try self.makeSource(pool: measure)
        _ = try await measured.frame(at: 0)
        let one = measure.byteCount
        let pool = FramePool(byteLimit: 2 * one)
        let source = try self.makeSource(pool: pool)
        let first = try await source.frame(at: 0)
        _ = try await source.frame(at: 1)
        #expect(try await source.frame(at: 0).pixels === first.pixels)
        _ = try await source.frame(at: 2)
        #expect(pool.frameCount == 2)
        #expect(pool.byteCount <= 2 * one)
        #expect(try await source.frame(at: 0).pixels === first.pixels)
    }
}

/// Three frames of 100, 200 and 300 ms on a small canvas.
private struct ScriptedCoder: ImageCoder {
    let decodableFormats: Set<ImageFormat> = [.gif]
    let encodableFormats: Set<ImageFormat> = []

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage { ScriptedImage() }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data { Data() }
}

private struct ScriptedImage: EncodedImage {
    var header: ImageHeader {
        var header = ImageHeader(format: .gif, pixelWidth: 4, pixelHeight: 4)
        for milliseconds in [100, 200, 300] { header.animation.appendFrame(milliseconds: milliseconds) }
        return header
    }

    func decode(options: DecodeOptions) throws -> DecodedImage {
        throw CodingError.truncated(.gif)
    }

    func frameReader(options: DecodeOptions) throws -> (any FrameReader)? {
        let frame = AnimationFrame(left: 0, top: 0, width: 4, height: 4)
        return try ScriptedFrames(canvas: PixelSize(width: 4, height: 4), frames: [frame, frame, frame])
    }
}

/// A clock whose sleeps end at once and are written down.
private final class RecordingClock: Clock {
    private let recorded = Locked<[Duration]>([])

    var sleeps: [Duration] { self.recorded.withLock { $0 } }
    let now = ContinuousClock.Instant.now
    var minimumResolution: Duration { .zero }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        self.recorded.withLock { $0.append(self.now.duration(to: deadline)) }
        try Task.checkCancellation()
    }
}
