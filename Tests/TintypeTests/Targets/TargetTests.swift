// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTargets
import TintypeTestSupport
import TintypeTestTraits

/// The calls that a target receives from a load.
@Suite(.waiting, .timeLimit(.minutes(5))) struct TargetTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()
    let target = RecordingTarget()
    let loader: LoaderActor

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.loader = self.fixture.makeLoader { $0.coders = CoderRegistry() }
    }

    /// Returns a request for an image of one gray.
    private func request(_ gray: UInt8, heldBy gate: Gate? = nil) throws -> ImageRequest {
        let body = try makePNG(gray: gray)
        self.origin.script("/\(gray)", gate.map { .held(by: $0, body: body) } ?? .body(body))
        return ImageRequest(url: self.origin.url("/\(gray)"))
    }

    @Test func `a load shows the placeholder, tells its progress, and changes over to the image`() async throws {
        let request = try self.request(7)
        let options = TargetOptions(placeholder: try makeGray(1))
        let load = self.loader.load(request, into: self.target, options: options)
        #expect(try await load.response.source == .network)
        #expect(await self.target.shown() == [.placeholder(1), .transition(7)])
        let progress = await self.target.progress()
        #expect(progress.first == .started && progress.last == .completed)
        let count = Int64(try makePNG(gray: 7).count)
        #expect(progress.contains(.received(TransferProgress(receivedBytes: count, expectedBytes: count))))
        #expect(progress.last?.fractionCompleted == 1 && progress.first?.fractionCompleted == 0)
        #expect(self.target.imageLoads.count == 0)
    }

    @Test func `an image in memory is set at once, without placeholder and transition`() async throws {
        let request = try self.request(7)
        _ = try await self.loader.image(for: request)
        let options = TargetOptions(placeholder: try makeGray(1))
        _ = try await self.loader.load(request, into: self.target, options: options).response
        #expect(await self.target.shown() == [.image(7, .final, .memory)])
        #expect(await self.target.progress() == [.started, .completed])
    }

    @Test(arguments: [
        (TargetOptions.TransitionUse.never, false, false), (.never, true, false),
        (.unlessInMemory, false, true), (.unlessInMemory, true, false),
        (.always, false, true), (.always, true, true),
    ])
    func `a transition comes unless the image was in memory, or always, or never`(
        _ use: TargetOptions.TransitionUse,
        _ isInMemory: Bool,
        _ isExpected: Bool
    ) async throws {
        let request = try self.request(7)
        if isInMemory { _ = try await self.loader.image(for: request) }
        let options = TargetOptions(transitionUse: use)
        _ = try await self.loader.load(request, into: self.target, options: options).response
        let last = await self.target.shown().last
        #expect(last == (isExpected ? .transition(7) : .image(7, .final, isInMemory ? .memory : .network)))
    }

    @Test func `an image from disk comes with a transition`() async throws {
        var request = try self.request(7)
        request.options.insert(.waitForStore)
        _ = try await self.loader.image(for: request)
        let other = self.fixture.makeLoader()
        #expect(try await other.load(request, into: self.target).response.source == .disk)
        #expect(await self.target.shown() == [.placeholder(nil), .transition(7)])
    }

    @Test func `a placeholder that is shown on failure leaves the target as it is until then`() async throws {
        var options = TargetOptions(placeholder: try makeGray(1), placeholderUse: .onFailure)
        _ = try await self.loader.load(self.request(7), into: self.target, options: options).response
        #expect(await self.target.shown() == [.transition(7)])
        let missing = ImageRequest(url: self.origin.url("/missing"))
        let error = await #expect(throws: LoadError.self) {
            try await self.loader.load(missing, into: self.target, options: options).response
        }
        #expect(error?.code == .badStatus)
        #expect(await self.target.shown() == [.transition(7), .placeholder(1), .failure(.badStatus)])
        #expect(await self.target.progress().last == .started)
        options.failureImage = try makeGray(2)
        _ = try? await self.loader.load(missing, into: self.target, options: options).response
        #expect(await self.target.shown().suffix(2) == [.image(2, .failure, nil), .failure(.badStatus)])
    }

    @Test(arguments: [TargetOptions.PlaceholderUse.immediately, .onFailure])
    func `without a request the placeholder is shown, and what was loaded before ends`(
        _ use: TargetOptions.PlaceholderUse
    ) async throws {
        let gate = Gate()
        let first = self.loader.load(try self.request(7, heldBy: gate), into: self.target)
        await self.origin.waitForRequests(for: "/7")
        let options = TargetOptions(
            placeholder: try makeGray(1),
            placeholderUse: use,
            failureImage: try makeGray(2)
        )
        let error = await #expect(throws: LoadError.self) {
            try await self.loader.load(nil, into: self.target, options: options).response
        }
        #expect(error?.code == .invalidURL)
        await #expect(throws: CancellationError.self) { try await first.response }
        await self.origin.waitForCancellations(for: "/7")
        await gate.open()
        #expect(await self.target.shown() == [.placeholder(nil), .placeholder(1), .failure(.invalidURL)])
    }

    @Test func `an image that the caller sets itself is not set, and neither are previews`() async throws {
        let options = TargetOptions(placeholder: try makeGray(1), failureImage: try makeGray(2), setsImage: false)
        let load = self.loader.load(try self.request(7), into: self.target, options: options)
        #expect(try await load.response.image.width == 8)
        #expect(await self.target.shown() == [.placeholder(1)])
        #expect(await self.target.progress().last == .completed)
        let missing = ImageRequest(url: self.origin.url("/missing"))
        _ = try? await self.loader.load(missing, into: self.target, options: options).response
        #expect(await self.target.shown().suffix(2) == [.image(2, .failure, nil), .failure(.badStatus)])
    }

    @Test(arguments: [true, false]) func `previews are shown where the request asks for them`(
        _ areAsked: Bool
    ) async throws {
        let body = try PreviewTests.progressiveJPEG()
        let gate = Gate()
        let middle = body.count * 3 / 4
        let halves = [Array(body[..<middle]), Array(body[middle...])]
        self.origin.script("/a", .pieces(halves, movedBy: [gate]))
        let request = ImageRequest(url: self.origin.url("/a"), options: areAsked ? [.previews] : [])
        let load = self.loader.load(request, into: self.target)
        let previewCount = { @Sendable in
            await self.target.shown().count { call in
                if case .image(_, .preview, nil) = call { true } else { false }
            }
        }
        if areAsked {
            await until { await previewCount() > 0 }
        } else {
            await until { await self.target.progress().count > 1 }
        }
        await gate.open()
        _ = try await load.response
        let count = await previewCount()
        #expect((count > 0) == areAsked)
        guard case .transition? = await self.target.shown().last else {
            Issue.record("the image is not shown last")
            return
        }
    }

    @Test func `a cached image is shown while its origin is asked`() async throws {
        var request = try self.request(7)
        _ = try await self.loader.image(for: request)
        self.origin.script("/7", .body(try makePNG(gray: 9)))
        request.cachePolicy = .revalidate
        _ = try await self.loader.load(request, into: self.target).response
        #expect(await self.target.shown() == [.placeholder(nil), .image(7, .cached, .memory), .transition(9)])
    }

    @Test func `keys of one target are loaded side by side`() async throws {
        let gate = Gate()
        let first = self.loader.load(try self.request(7, heldBy: gate), into: self.target, key: "front")
        await self.origin.waitForRequests(for: "/7")
        _ = try await self.loader.load(try self.request(9), into: self.target, key: "back").response
        await gate.open()
        _ = try await first.response
        #expect(await self.target.shown("front") == [.placeholder(nil), .transition(7)])
        #expect(await self.target.shown("back") == [.placeholder(nil), .transition(9)])
    }

    @Test func `a load whose place another loader took shows nothing`() async throws {
        let gate = Gate()
        let first = self.loader.load(try self.request(7, heldBy: gate), into: self.target)
        await self.origin.waitForRequests(for: "/7")
        let other = self.fixture.makeLoader()
        _ = try await other.load(try self.request(9), into: self.target).response
        await #expect(throws: CancellationError.self) { try await first.response }
        await self.origin.waitForCancellations(for: "/7")
        #expect(await self.target.shown() == [.placeholder(nil), .placeholder(nil), .transition(9)])
    }

    @Test(arguments: [0, 1, 2]) func `a load can be cancelled by its target, by itself, and by its caller`(
        _ way: Int
    ) async throws {
        let load = self.loader.load(try self.request(7, heldBy: Gate()), into: self.target)
        let caller = Task { try await load.response }
        await self.origin.waitForRequests(for: "/7")
        switch way {
        case 0: self.loader.cancelLoad(of: self.target)
        case 1: load.cancel()
        default: caller.cancel()
        }
        await #expect(throws: CancellationError.self) { try await caller.value }
        await self.origin.waitForCancellations(for: "/7")
        #expect(await self.target.shown() == [.placeholder(nil)])
        #expect(self.target.imageLoads.count == 0)
        // The target can load again.
        _ = try await self.loader.load(try self.request(9), into: self.target).response
        #expect(await self.target.shown().last == .transition(9))
    }

    @Test func `a load ends when its target goes away`() async throws {
        var target: RecordingTarget? = RecordingTarget()
        weak let remembered = target
        let load = self.loader.load(try self.request(7, heldBy: Gate()), into: try #require(target))
        await self.origin.waitForRequests(for: "/7")
        target = nil
        await #expect(throws: CancellationError.self) { try await load.response }
        await self.origin.waitForCancellations(for: "/7")
        #expect(remembered == nil)
        await until { await self.loader.loadCount == 0 }
    }

    @Test func `a target may begin another load when one fails`() async throws {
        let loader = self.loader
        let substitute = try self.request(9)
        let target = RecordingTarget { target in
            loader.load(substitute, into: target)
        }
        _ = try? await loader.load(ImageRequest(url: self.origin.url("/missing")), into: target).response
        await until { await target.shown().last == .transition(9) }
        #expect(
            await target.shown()
                == [.placeholder(nil), .failure(.badStatus), .placeholder(nil), .transition(9)]
        )
    }

    @Test(arguments: [
        (RecordingTarget.Call.progress(.started), false), (.progress(.started), true), (.progress(.completed), false),
        (.progress(.completed), true), (.placeholder(1), false), (.image(2, .failure, nil), false),
    ])
    func `a target that begins another load while it is told of one hears no more of that`(
        _ call: RecordingTarget.Call,
        _ isInMemory: Bool
    ) async throws {
        let (loader, next) = (self.loader, try self.request(9))
        var first = try self.request(7)
        if isInMemory { _ = try await loader.image(for: first) }
        if case .image = call { first = ImageRequest(url: self.origin.url("/missing")) }
        let target = RecordingTarget(on: call) { $0.begin(9, next, by: loader) }
        let options = TargetOptions(placeholder: try makeGray(1), failureImage: try makeGray(2))
        let load = loader.load(first, into: target, options: options)
        await #expect(throws: CancellationError.self) { try await load.response }
        await until { await target.shown().last == .transition(9) }
        let shown = await target.shown()
        let begin = try #require(shown.firstIndex(of: .begin(9)))
        #expect(Array(shown[(begin + 1)...]) == [.placeholder(nil), .transition(9)])
    }

    @Test func `a loader that was shut down fails the load`() async throws {
        await self.loader.shutdown()
        _ = try? await self.loader.load(try self.request(7), into: self.target).response
        #expect(await self.target.shown() == [.placeholder(nil), .failure(.shutDown)])
    }

    // MARK: Order

    /// The steps of a load are start, progress and end, or start and failure.
    @Test(arguments: [(0, false), (1, false), (2, false), (0, true), (1, true)])
    func `what waits for its target when another load begins is not shown`(
        _ stepCount: Int,
        _ isFailing: Bool
    ) async throws {
        let target = HeldTarget()
        let options = { gray in
            let image = try makeGray(gray)
            return TargetOptions(placeholder: image, failureImage: image)
        }
        let missing = ImageRequest(url: self.origin.url("/missing"))
        let first = self.loader.load(isFailing ? missing : try self.request(7), into: target, options: try options(7))
        for _ in 0..<stepCount {
            await until { target.stepCount > 0 }
            target.runStep()
        }
        await until { target.stepCount > 0 }
        let before = target.shown
        #expect(before == (stepCount > 0 ? [7] : []))
        let second = self.loader.load(try self.request(9), into: target, options: try options(9))
        let end = Task { try await second.response }
        await until {
            target.runStep()
            return target.imageLoads.count == 0 && target.stepCount == 0
        }
        #expect(try await end.value.source == .network)
        #expect(target.shown == before + [9, 9])
        await #expect(throws: CancellationError.self) { try await first.response }
    }

    /// Loads into two keys, held and released in any order, show nothing after another load has begun.
    @Test(arguments: UInt64(1)...24) func `nothing of an older load is shown, whatever comes first`(
        seed: UInt64
    ) async throws {
        var generator = SeededGenerator(seed: seed)
        let keys: [TargetKey] = ["a", "b"]
        let loader = self.loader
        let target = self.target
        var gates: [Gate] = []
        var loads: [TargetLoad] = []
        for number in UInt8(1)...40 {
            let gate = Gate()
            gates.append(gate)
            let body = try makePNG(gray: number)
            let isFailing = Int.random(in: 0..<5, using: &generator) == 0
            var response = ScriptedResponse.held(by: gate, body: body)
            if isFailing { response.status = 404 }
            self.origin.script("/\(number)", response)
            let request = ImageRequest(url: self.origin.url("/\(number)"))
            if Bool.random(using: &generator) { await gate.open() }
            if !isFailing, Int.random(in: 0..<4, using: &generator) == 0 {
                await gate.open()
                _ = try await loader.image(for: request)
            }
            let key = keys[Int.random(in: 0..<2, using: &generator)]
            let gray = try makeGray(number)
            let options = TargetOptions(
                placeholder: gray,
                placeholderUse: Bool.random(using: &generator) ? .immediately : .onFailure,
                failureImage: Bool.random(using: &generator) ? gray : nil
            )
            loads.append(await target.begin(number, request, by: loader, key: key, options: options))
            for _ in 0..<Int.random(in: 0..<60, using: &generator) { await Task.yield() }
            if Bool.random(using: &generator) { await gates.randomElement(using: &generator)?.open() }
            if Int.random(in: 0..<8, using: &generator) == 0 { await target.cancel(by: loader, key: key) }
        }
        for gate in gates.shuffled(using: &generator) { await gate.open() }
        for load in loads { _ = try? await load.response }
        for key in keys {
            let calls = await target.shown(key)
            var current: UInt8?
            for call in calls {
                switch call {
                case .begin(let number): current = number
                case .cancel: current = nil
                case .placeholder(let gray): #expect(gray == current, "\(key): \(calls)")
                case .image(let gray, _, _), .transition(let gray): #expect(gray == current, "\(key): \(calls)")
                case .failure: #expect(current != nil, "\(key): \(calls)")
                case .progress: break
                }
            }
            // The last load has ended, unless it was cancelled.
            if let current, let last = calls.last { #expect(last != .begin(current), "\(key): \(calls)") }
        }
        #expect(target.imageLoads.count == 0)
        await until { await loader.loadCount == 0 }
    }
}
