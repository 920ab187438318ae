// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeConcurrency
import TintypeTargets

/// Shows as many images at once as fit on the terminal: loads them side by side, and plays animations.
struct ShowPage: Sendable {
    /// The treatment of animations.
    enum Playback: Sendable {
        /// Only their first images are shown.
        case still
        /// They are played so often, 0 for ever; `nil` as they say.
        case loops(Int?)
    }

    /// An animation that is ready to be played.
    private struct Animation: Sendable {
        let index: Int
        let key: TargetKey
        let frames: FrameSource
    }

    let loader: LoaderActor
    let screen: TerminalScreen
    let drawing: ImageDrawing
    let input: TerminalInput?
    let playback: Playback
    let cachePolicy: CachePolicy?

    /// Shows images until all have arrived, and all animations have ended or a key was pressed.
    ///
    /// - Returns: The failed inputs, in their order.
    /// - Throws: `CancellationError`; `OutputError` if the terminal cannot be written.
    func show(_ inputs: [Input], at places: [ScreenLayout.Place]) async throws -> [(Input, any Error)] {
        let keys = inputs.indices.map { TargetKey("\($0)") }
        await self.screen.begin(inputs.indices.map { (keys[$0], places[$0], inputs[$0].text) })
        let result: Result<[Int: any Error], any Error>
        do {
            result = .success(try await self.loadAndPlay(inputs, keys, places))
        } catch {
            result = .failure(error)
        }
        // The terminal is given back whatever happened.
        try await self.screen.end()
        let failures = try result.get()
        return failures.sorted { $0.key < $1.key }.map { (inputs[$0.key], $0.value) }
    }

    private func loadAndPlay(
        _ inputs: [Input],
        _ keys: [TargetKey],
        _ places: [ScreenLayout.Place]
    ) async throws -> [Int: any Error] {
        let (animations, continuation) = AsyncStream.makeStream(of: Animation.self)
        async let playing = self.play(animations)
        defer { continuation.finish() }
        let unloaded = try await self.load(inputs, keys, places) { continuation.yield($0) }
        continuation.finish()
        let unplayed = await playing
        try Task.checkCancellation()
        return unloaded.merging(unplayed) { first, _ in first }
    }

    /// Loads some images at once, and hands on the animations; returns the errors of the others.
    private func load(
        _ inputs: [Input],
        _ keys: [TargetKey],
        _ places: [ScreenLayout.Place],
        animate: @escaping @Sendable (Animation) -> Void
    ) async throws -> [Int: any Error] {
        let gate = WeightedGate(capacity: ShowCommand.concurrency)
        return try await withThrowingTaskGroup(of: (Int, (any Error)?).self) { group in
            for index in inputs.indices {
                group.addTask {
                    do {
                        let frames = try await gate.withWeight(1) {
                            try await self.load(inputs[index], keys[index], places[index])
                        }
                        if let frames { animate(Animation(index: index, key: keys[index], frames: frames)) }
                        return (index, nil)
                    } catch let error as CancellationError {
                        throw error
                    } catch {
                        return (index, error)
                    }
                }
            }
            var failures: [Int: any Error] = [:]
            for try await (index, error) in group { failures[index] = error }
            return failures
        }
    }

    /// Loads one image, and returns its frames if it is to be played.
    private func load(_ input: Input, _ key: TargetKey, _ place: ScreenLayout.Place) async throws -> FrameSource? {
        let request = ImageRequest(
            url: input.url,
            thumbnail: self.drawing.resize(into: place.size),
            options: [.previews, .keepData],
            cachePolicy: self.cachePolicy
        )
        let response = try await self.loader.load(request, into: self.screen, key: key).response
        guard case .loops = self.playback, let data = response.data,
            let decoder = try? ImageDecoder(data, registry: CoderRegistry()), decoder.header.animation.frameCount > 1
        else { return nil }
        // The image was just loaded, so it is cached.
        return try await self.loader.frames(for: ImageRequest(url: input.url))
    }

    // MARK: Playing

    /// Plays animations as they come, until all have ended or a key is pressed; returns why some broke off.
    private func play(_ animations: AsyncStream<Animation>) async -> [Int: any Error] {
        let (moves, motion) = AsyncStream.makeStream(of: Void.self)
        return await withTaskGroup(of: [Int: any Error]?.self) { group in
            group.addTask {
                await self.playAll(animations) { motion.yield() }
            }
            group.addTask {
                // Without animations, the shell gets the typed keys.
                for await _ in moves where await self.input?.waitForKey() == true { return [:] }
                return nil
            }
            var failures: [Int: any Error] = [:]
            for await end in group {
                guard let end else { continue }
                failures.merge(end) { first, _ in first }
                group.cancelAll()
            }
            return failures
        }
    }

    private func playAll(_ animations: AsyncStream<Animation>, begin: () -> Void) async -> [Int: any Error] {
        await withTaskGroup(of: (Int, (any Error)?).self) { group in
            for await animation in animations {
                begin()
                group.addTask { (animation.index, await self.play(animation)) }
            }
            var failures: [Int: any Error] = [:]
            for await (index, error) in group { failures[index] = error }
            return failures
        }
    }

    /// Plays an animation to its end; returns why it broke off.
    private func play(_ animation: Animation) async -> (any Error)? {
        guard case .loops(let asked) = self.playback else { return nil }
        // No key would ever end what is shown for ever.
        let isEndless = self.input == nil && animation.frames.loopCount == 0
        let player = AnimationPlayer(animation.frames, loopLimit: asked ?? (isEndless ? 1 : nil))
        do {
            for try await frame in player {
                try Task.checkCancellation()
                await self.screen.show(frame: frame.image, at: animation.key)
            }
            return nil
        } catch {
            return error is CancellationError ? nil : error
        }
    }
}
