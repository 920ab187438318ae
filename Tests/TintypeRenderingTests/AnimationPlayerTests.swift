// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConcurrency
import TintypeImage
import TintypeTestTraits

@testable import TintypeCoding
@testable import TintypeRendering

@Suite(.waiting, .timeLimit(.minutes(5))) struct AnimationPlayerTests {
    @Test(arguments: [
        (AnimationPlayer.Mode.normal, 1, [0, 1, 2]), (.normal, 2, [0, 1, 2, 0, 1, 2]),
        (.reverse, 2, [2, 1, 0, 2, 1, 0]), (.bounce, 1, [0, 1, 2]), (.bounce, 3, [0, 1, 2, 1, 0, 1, 2]),
        (.reverseBounce, 1, [2, 1, 0]), (.reverseBounce, 3, [2, 1, 0, 1, 2, 1, 0]),
    ])
    func `frames come in the order of the mode`(mode: AnimationPlayer.Mode, loops: Int, expected: [Int]) {
        var state = PlaybackState(frameCount: 3, mode: mode, loopLimit: loops)
        #expect(Array(sequence(state: 0) { _ in state.next() }) == expected)
        #expect(state.next() == nil)
    }

    @Test(arguments: AnimationPlayer.Mode.allCases) func `one frame is shown once a loop`(mode: AnimationPlayer.Mode) {
        var state = PlaybackState(frameCount: 1, mode: mode, loopLimit: 3)
        #expect(Array(sequence(state: 0) { _ in state.next() }) == [0, 0, 0])
    }

    @Test func `no limit plays for ever`() {
        var state = PlaybackState(frameCount: 2, mode: .normal, loopLimit: 0)
        #expect((0..<1_000).map { _ in state.next() } == (0..<1_000).map { $0 % 2 })
    }

    @Test(arguments: [
        (AnimationPlayer.Mode.normal, 2, [2, 3]), (.normal, 0, [0, 1, 2, 3]), (.reverse, 1, [1, 0]),
        (.reverse, 3, [3, 2, 1, 0]), (.normal, 9, [1, 2, 3]), (.normal, -1, [1, 2, 3]),
    ])
    func `seeking makes a frame the next one`(mode: AnimationPlayer.Mode, target: Int, expected: [Int]) {
        var state = PlaybackState(frameCount: 4, mode: mode, loopLimit: 1)
        _ = state.next()
        state.seek(to: target)
        let rest = Array(sequence(state: 0) { _ in state.next() })
        #expect(rest == (mode == .reverse && target > 3 ? [] : expected))
    }

    @Test(arguments: AnimationPlayer.Mode.allCases, [0, 1, 2, 3, 8])
    func `whole loops are passed over as if they were gone through`(mode: AnimationPlayer.Mode, limit: Int) {
        for frameCount in 2...4 {
            for steps in 1...9 {
                for count in 0...4 {
                    var quick = PlaybackState(frameCount: frameCount, mode: mode, loopLimit: limit)
                    for _ in 0...steps { _ = quick.next() }
                    var slow = quick
                    let passed = quick.passCycles(count)
                    #expect(limit > 0 ? passed <= count : passed == count)
                    for _ in 0..<(passed * quick.cycle.count) { #expect(slow.next() != nil) }
                    #expect(slow.loop == quick.loop)
                    #expect(slow.next() == quick.next())
                }
            }
        }
    }

    /// Creates a source of the frames of a ``ScriptedCoder``.
    private func makeSource(pool: FramePool = FramePool()) throws -> FrameSource {
        let coder = ScriptedCoder()
        let decoder = try ImageDecoder(Data([1]), registry: CoderRegistry(), coder: coder)
        return FrameSource(decoder, lanes: DecodeLanes(count: 1), pool: pool)
    }

    @Test(arguments: [nil, 0, 5]) func `a still is given once, whatever the limit of loops`(limit: Int?) async throws {
        let decoder = try ImageDecoder(try SampleFiles.smooth(.png), registry: SampleFiles.registry)
        let source = FrameSource(decoder, lanes: DecodeLanes(count: 1))
        var count = 0
        for try await frame in AnimationPlayer(source, loopLimit: limit) {
            #expect((frame.index, frame.loop) == (0, 0))
            count += 1
            if count > 3 { break }
        }
        #expect(count == 1)
    }

    @Test func `frames wait as long as the one before is shown`() async throws {
        let clock = SteeredClock()
        let player = AnimationPlayer(try self.makeSource(), rate: 2, loopLimit: 2, clock: clock)
        var indices: [Int] = []
        var loops: [Int] = []
        for try await frame in player {
            indices.append(frame.index)
            loops.append(frame.loop)
        }
        #expect(indices == [0, 1, 2, 0, 1, 2])
        #expect(loops == [0, 0, 0, 1, 1, 1])
        // The clock runs at twice the rate, and the player does not wait after the last frame.
        #expect(clock.wakes == [50, 150, 300, 350, 450, 600].map { .milliseconds($0) })
    }

    // MARK: Time

    private func makePlayer(
        _ clock: SteeredClock,
        mode: AnimationPlayer.Mode = .normal,
        loopLimit: Int? = 0,
        restingFrame: Int? = nil
    ) throws -> AnimationPlayer {
        AnimationPlayer(
            try self.makeSource(),
            mode: mode,
            loopLimit: loopLimit,
            restingFrame: restingFrame,
            clock: clock
        )
    }

    @Test(arguments: [1, -1, .min]) func `a player that has ended goes on where it is sought`(limit: Int) async throws {
        let player = AnimationPlayer(try self.makeSource(), loopLimit: limit, restingFrame: 0, clock: SteeredClock())
        func play() async throws -> [Int] { try await player.reduce(into: []) { $0.append($1.index) } }
        #expect(try await play() == [0, 1, 2, 0])
        #expect(try await play() == [])
        player.seek(to: 1)
        #expect(try await play() == [1, 2, 0])
    }

    @Test func `a reader that is late loses frames and not time`() async throws {
        let clock = SteeredClock()
        var frames = try self.makePlayer(clock).makeAsyncIterator()
        #expect(try await frames.next()?.index == 0)
        // The second frame's time is from 100 to 300, and the third one's from 300 to 600.
        clock.advance(by: .milliseconds(350))
        let late = try #require(try await frames.next())
        #expect((late.index, late.lostFrameCount) == (2, 1))
        #expect(clock.wakes.isEmpty)
        let next = try #require(try await frames.next())
        #expect((next.index, next.loop, next.lostFrameCount) == (0, 1, 0))
        #expect(clock.wakes == [.milliseconds(600)])
    }

    @Test(arguments: AnimationPlayer.Mode.allCases)
    func `a reader that is a year late is where the clock is`(mode: AnimationPlayer.Mode) async throws {
        let clock = SteeredClock()
        var frames = try self.makePlayer(clock, mode: mode).makeAsyncIterator()
        _ = try await frames.next()
        let length = mode == .normal || mode == .reverse ? 600 : 800
        let loops = 365 * 86_400_000 / length
        // The clock advances by whole cycles and half of the first frame.
        clock.advance(by: .milliseconds(loops * length + (mode == .normal || mode == .bounce ? 50 : 150)))
        // The frame is the same as before the delay, and its time is not yet over.
        let late = try #require(try await frames.next())
        #expect(late.index == (mode == .normal || mode == .bounce ? 0 : 2))
        // A loop forth and back reaches its first frame before the loop is over.
        #expect(late.loop == (length == 600 ? loops : loops * 2 - 1))
        #expect(late.lostFrameCount == loops * (length == 600 ? 3 : 4) - 1)
    }

    @Test func `the last frame is shown however late it is, and the player ends`() async throws {
        let clock = SteeredClock()
        var frames = try self.makePlayer(clock, loopLimit: 3).makeAsyncIterator()
        _ = try await frames.next()
        clock.advance(by: .seconds(1_000))
        let last = try #require(try await frames.next())
        #expect((last.index, last.loop, last.lostFrameCount) == (2, 2, 7))
        #expect(try await frames.next() == nil)
        #expect(try await frames.next() == nil)
    }

    @Test func `a player rests on the frame that was chosen for that`() async throws {
        let player = try self.makePlayer(SteeredClock(), loopLimit: 1, restingFrame: 0)
        #expect(try await player.reduce(into: []) { $0.append($1.index) } == [0, 1, 2, 0])
        let other = try self.makePlayer(SteeredClock(), loopLimit: 1, restingFrame: 3)
        #expect(try await other.reduce(into: []) { $0.append($1.index) } == [0, 1, 2])
    }

    @Test func `a frame that was sought is not lost, and time goes on from it`() async throws {
        let clock = SteeredClock()
        let player = try self.makePlayer(clock)
        var frames = player.makeAsyncIterator()
        _ = try await frames.next()
        clock.advance(by: .seconds(10))
        player.seek(to: 1)
        let sought = try #require(try await frames.next())
        #expect((sought.index, sought.lostFrameCount) == (1, 0))
        #expect(try await frames.next()?.index == 2)
        #expect(clock.wakes == [.milliseconds(10_200)])
    }

    @Test func `time stands still while a player is paused`() async throws {
        let clock = SteeredClock()
        let player = try self.makePlayer(clock)
        var frames = player.makeAsyncIterator()
        _ = try await frames.next()
        player.pause()
        #expect(player.isPaused)
        clock.advance(by: .seconds(10))
        player.resume()
        let next = try #require(try await frames.next())
        #expect((next.index, next.lostFrameCount) == (1, 0))
        #expect(clock.wakes == [.milliseconds(10_100)])
    }

    @Test func `a frame that is sought while another one is awaited takes its place`() async throws {
        let clock = SteeredClock()
        let player = try self.makePlayer(clock)
        var frames = player.makeAsyncIterator()
        _ = try await frames.next()
        clock.onSleep { player.seek(to: 2) }
        #expect(try await frames.next()?.index == 2)
    }

    @Test func `a paused player holds its frame until it is resumed`() async throws {
        let player = AnimationPlayer(try self.makeSource(), loopLimit: 1, clock: SteeredClock())
        player.pause()
        let reader = Task { try await player.reduce(into: []) { $0.append($1.index) } }
        player.seek(to: 1)
        player.resume()
        #expect(try await reader.value == [1, 2])
    }

    @Test func `cancelling a paused reader ends it`() async throws {
        let player = AnimationPlayer(try self.makeSource(), clock: SteeredClock())
        player.pause()
        let reader = Task { for try await _ in player {} }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
    }

    @Test func `frames come from the pool the second time`() async throws {
        let pool = FramePool()
        let source = try self.makeSource(pool: pool)
        let first = try await source.frame(at: 2)
        #expect(pool.frameCount == 1)
        #expect(try await source.frame(at: 2).pixels === first.pixels)
        await #expect(throws: CodingError.self) { try await source.frame(at: 3) }
    }

    @Test func `the pool keeps to its limit and drops the oldest`() async throws {
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

/// A coder of three frames of 100, 200 and 300 ms on a small canvas.
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

/// A clock that stands still, except that a test can advance it and a sleep advances it to the end of the sleep.
private final class SteeredClock: Clock {
    private struct State {
        var now = ContinuousClock.Instant.now
        var wakes: [ContinuousClock.Instant] = []
        var onSleep: (@Sendable () -> Void)?
    }

    private let start: ContinuousClock.Instant
    private let state: Locked<State>

    init() {
        let state = State()
        self.start = state.now
        self.state = Locked(state)
    }

    /// The ends of all sleeps, relative to the start.
    var wakes: [Duration] { self.state.withLock { $0.wakes }.map { self.start.duration(to: $0) } }
    var now: ContinuousClock.Instant { self.state.withLock { $0.now } }
    var minimumResolution: Duration { .zero }

    func advance(by duration: Duration) {
        self.state.withLock { $0.now = $0.now.advanced(by: duration) }
    }

    /// Performs an action in the middle of the next sleep.
    func onSleep(_ action: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.onSleep = action }
    }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        let action = self.state.withLock { state in
            state.now = max(state.now, deadline)
            state.wakes.append(deadline)
            return state.onSleep.take()
        }
        action?()
        try Task.checkCancellation()
    }
}
