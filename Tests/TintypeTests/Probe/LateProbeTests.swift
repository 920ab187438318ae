import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import TintypeConcurrency

@testable import Tintype

/// Callers that come late, and shutdowns that come early.
@Suite(.waiting, .timeLimit(.minutes(2))) struct LateProbeTests {
    let fixture: LoaderFixture
    let scripted = ScriptedOrigin()
    let latch = Latch()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
        self.scripted.script("/a", .body(try makePNG()))
    }

    private func makeHeldLoader(_ change: (inout LoaderActor.Configuration) -> Void = { _ in }) -> LoaderActor {
        let (latch, fixture) = (self.latch, self.fixture)
        return self.fixture.makeLoader { configuration in
            configuration.laneCount = 4
            configuration.coders = CoderRegistry(coders: [
                CountingCoder(PNGCoder(), fixture.decodes, heldBy: latch),
                CountingCoder(JPEGCoder(), fixture.decodes, heldBy: latch),
            ])
            change(&configuration)
        }
    }

    @Test func `who waits for the store and joins late hears that it failed`() async throws {
        let loader = self.makeHeldLoader { $0.disk?.sizeLimit = 10 }
        let plain = ImageRequest(url: self.scripted.url("/a"))
        let first = Task { try await loader.response(for: plain) }
        await until { self.fixture.decodes.count == 1 }
        var waiting = plain
        waiting.options = [.waitForStore]
        let second = Task { [waiting] in try await loader.response(for: waiting) }
        await until { await loader.waiterCount == 2 }
        self.latch.open()
        #expect(try await first.value.storeError == nil)
        #expect(try await second.value.storeError != nil)
    }

    @Test func `who wants the bytes stored and joins late has them stored`() async throws {
        let loader = self.makeHeldLoader()
        let plain = ImageRequest(url: self.scripted.url("/a"), originalCaching: CacheUse(query: .all, store: .none))
        let first = Task { try await loader.response(for: plain) }
        await until { self.fixture.decodes.count == 1 }
        var waiting = plain
        waiting.options = [.waitForStore]
        waiting.originalCaching = .all
        let second = Task { [waiting] in try await loader.response(for: waiting) }
        await until { await loader.waiterCount == 2 }
        self.latch.open()
        _ = try await first.value
        let response = try await second.value
        let isStored = await loader.cache.contains(plain.sourceKey, in: .disk)
        #expect(isStored || response.storeError != nil)
    }

    @Test func `a shutdown that lets loads finish gives them their bytes too`() async throws {
        let stored = ImageRequest(
            url: self.scripted.url("/a"),
            thumbnail: .fit(width: 4, height: 4),
            options: [.waitForStore],
            variantCaching: CacheUse()
        )
        _ = try await self.fixture.makeLoader().image(for: stored)
        let before = self.fixture.decodes.count
        let loader = self.makeHeldLoader()
        var request = stored
        request.options = [.keepData]
        let task = Task { [request] in try await loader.response(for: request) }
        await until { self.fixture.decodes.count > before }
        let end = Task { await loader.shutdown(finishesLoads: true) }
        let refused = ImageRequest(url: self.scripted.url("/none"))
        await until {
            do {
                _ = try await loader.data(for: refused)
                return false
            } catch {
                return (error as? LoadError)?.code == .shutDown
            }
        }
        self.latch.open()
        let result = await task.result
        #expect(result.failure == nil)
        #expect(result.success?.data != nil)
        await end.value
    }

    @Test(arguments: [0, -1, 1, Int.min, Int.max]) func `limits that are none end no process`(limit: Int) async throws {
        await #expect(processExitsWith: .success) { [limit] in
            let fixture = try LoaderFixture()
            let path = try fixture.directory.write(try makePNG(), to: "a")
            let loader = fixture.makeLoader { configuration in
                configuration.decodingMemory = limit
                configuration.downloads.bodyMemory = limit
                configuration.memory.costLimit = limit
                configuration.disk?.sizeLimit = limit
                configuration.framePoolByteLimit = limit
                configuration.laneCount = limit == .max ? 2 : limit
            }
            let request = ImageRequest(url: URL(filePath: path), scaleDownLimit: limit, options: [.previews])
            _ = try? await loader.image(for: request)
            for try await _ in loader.events(for: request) {}
            _ = try? await loader.frames(for: request).frame(at: 0)
            _ = try? await loader.image(
                for: ImageRequest(url: URL(filePath: path), thumbnail: .fit(width: limit, height: limit))
            )
            await loader.shutdown()
        }
    }

    /// Shutdowns at odd moments: every caller hears of it, and nothing is left.
    @Test(arguments: 0..<40) func `a shutdown at any moment ends everything`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let body = try makePNG(width: 60, height: 60)
        for index in 0..<10 { self.scripted.script("/\(index)", .body(body)) }
        self.scripted.script("/silent", .silence)
        let loader = self.fixture.makeLoader {
            $0.downloads.bodyMemory = seed.isMultiple(of: 2) ? 1 : 1_000_000
            $0.decodingMemory = seed.isMultiple(of: 3) ? 1 : 1_000_000
        }
        var tasks: [Task<Void, any Error>] = []
        for _ in 0..<60 {
            let number = Int.random(in: 0..<12, using: &random)
            var request = ImageRequest(url: self.scripted.url(number > 9 ? "/silent" : "/\(number)"))
            if Bool.random(using: &random) { request.thumbnail = .stretch(width: number + 1, height: 3) }
            if Bool.random(using: &random) { request.variantCaching = CacheUse() }
            if Bool.random(using: &random) { request.options.insert(.waitForStore) }
            if Bool.random(using: &random) { request.options.insert(.keepData) }
            request.cachePolicy = [nil, .reload, .revalidate, .honorFreshness].randomElement(using: &random) ?? nil
            let kind = Int.random(in: 0..<3, using: &random)
            tasks.append(
                Task { [request] in
                    switch kind {
                    case 0: _ = try await loader.response(for: request)
                    case 1: _ = try await loader.dataResponse(for: request)
                    default: for try await _ in loader.events(for: request) {}
                    }
                }
            )
        }
        for _ in 0..<Int.random(in: 0..<200, using: &random) { await Task.yield() }
        async let other: Void = loader.shutdown()
        let ended = await outcome { await loader.shutdown() }
        #expect(ended != nil)
        await other
        for task in tasks {
            if case .failure(let error) = await task.result {
                #expect(error is CancellationError || (error as? LoadError)?.code == .shutDown)
            }
        }
        #expect(await loader.loadCount == 0)
        await until { await loader.downloads.counters.bodyBytes == 0 }
    }
}
