import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import TintypeConcurrency

@testable import Tintype

/// What is left of an attack on the loader: each of these fails.
@Suite(.waiting, .timeLimit(.minutes(2))) struct OpenHolesTests {
    let fixture: LoaderFixture
    let scripted = ScriptedOrigin()
    let clock = TestClock()
    let latch = Latch()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
        self.scripted.script("/a", .body(try makePNG()))
    }

    private func makeLoader(
        _ policy: CachePolicy = .honorFreshness,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        let clock = self.clock
        return self.fixture.makeLoader { configuration in
            configuration.cachePolicy = policy
            configuration.now = { clock.now }
            configuration.memory.now = { clock.now }
            configuration.disk?.now = { clock.now }
            change(&configuration)
        }
    }

    private func makeHeldLoader(
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    )
        -> LoaderActor
    {
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

    @Test func `bodies of one source are in order whatever the policies of their loads`() async throws {
        let gate = Gate()
        self.scripted.script(
            "/a",
            sequence: [
                .held(by: gate, body: try makePNG(width: 10)),
                .body(try makePNG(width: 11), headers: ["Cache-Control": "max-age=600"]),
            ]
        )
        let loader = self.makeLoader(.neverRevalidate)
        let plain = ImageRequest(url: self.scripted.url("/a"), headers: ["Accept-Language": "de"])
        var asking = plain
        asking.cachePolicy = .revalidate
        let (scripted, newRequest) = (self.scripted, asking)
        let old = Task { try await loader.image(for: plain) }
        await self.scripted.waitForRequests(1, for: "/a")
        let new = Task { try await loader.image(for: newRequest) }
        await until {
            let count = await loader.queueCount(of: newRequest)
            return count == 1 || scripted.requestCount(for: "/a") == 2
        }
        if self.scripted.requestCount(for: "/a") == 2 { _ = try await new.value }
        await gate.open()
        #expect(try await old.value.width == 10)
        #expect(try await new.value.width == 11)
        // The answer to the later request is the newer one.
        #expect(try await loader.image(for: plain).width == 11)
        #expect(try await loader.data(for: plain) == Data(makePNG(width: 11)))
    }

    @Test func `a reload that does not fit on the disk leaves no older bytes there`() async throws {
        let large = try makePNG() + [UInt8](repeating: 0, count: 9_000)
        self.scripted.script("/a", sequence: [.body(try makePNG()), .body(large)])
        let loader = self.makeLoader(.neverRevalidate) { $0.disk?.sizeLimit = 8_000 }
        var request = ImageRequest(url: self.scripted.url("/a"), options: [.waitForStore])
        _ = try await loader.data(for: request)
        request.cachePolicy = .reload
        let reloaded = try await loader.dataResponse(for: request)
        #expect(reloaded.storeError != nil)
        request.cachePolicy = .cacheOnly
        let left = try? await loader.data(for: request)
        #expect(left == nil || left == reloaded.data)
    }

    @Test func `requests that select the same response get the newest of it`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.makeLoader()
        func request(_ language: String, _ policy: CachePolicy? = nil) -> ImageRequest {
            ImageRequest(
                url: origin.url,
                headers: ["Accept-Language": language],
                options: [.waitForStore],
                cachePolicy: policy
            )
        }
        _ = try await loader.image(for: request("de"))
        origin.revise()
        _ = try await loader.image(for: request("en", .reload))
        #expect(try await loader.data(for: request("de")) == Data(makePNG(width: 11)))
        #expect(try await loader.image(for: request("de")).width == 11)
    }

    @Test func `a reload in one of two loaders over one cache is seen in both`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let cache = CacheActor(
            disk: DiskCache(.init(directory: self.fixture.directory.url(of: "cache")))
        )
        let loaders = (0..<2).map { _ in self.makeLoader(.neverRevalidate) { $0.cache = cache } }
        let thumbnail = ImageRequest(url: origin.url, thumbnail: .stretch(width: 4, height: 3))
        _ = try await loaders[0].image(for: thumbnail)
        origin.revise()
        let new = try await loaders[1].dataResponse(
            for: ImageRequest(url: origin.url, cachePolicy: .reload)
        )
        for loader in loaders.reversed() {
            #expect(
                try await loader.response(for: thumbnail).metadata.bodyDigest == new.metadata.bodyDigest
            )
        }
    }

    @Test func `two loaders over one cache that ask for different things get what they asked for`()
        async throws
    {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        origin.vary(on: "X-Kind")
        let cache = CacheActor(disk: nil)
        let scripted = self.scripted
        let loaders = ["a", "bbb"].map { kind in
            self.makeLoader { configuration in
                configuration.cache = cache
                configuration.downloads.acceptHeader = kind
                configuration.fetcher = ClosureFetcher(respond: { request, observer in
                    var request = request
                    request.headers["X-Kind"] = kind
                    var response = try await scripted.response(for: request, observer: observer)
                    response.headers["Vary"] = "Accept"
                    return response
                })
            }
        }
        #expect(try await loaders[0].image(for: origin.url).width == 11)
        #expect(try await loaders[1].image(for: origin.url).width == 13)
    }

    @Test func `what the highest of several caches has lost is not older in the next`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let caches = ["low", "high"].map { name in
            CacheActor(disk: DiskCache(.init(directory: self.fixture.directory.url(of: name))))
        }
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        _ = try await self.makeLoader(.neverRevalidate) { $0.cache = caches[0] }.data(for: request)
        origin.revise()
        let loader = self.makeLoader(.neverRevalidate) { $0.cache = CacheGroup(caches) }
        var reload = request
        reload.cachePolicy = .reload
        _ = try await loader.data(for: reload)
        try await caches[1].remove(request.sourceKey, from: .all)
        #expect(try await loader.data(for: request) == Data(makePNG(width: 11)))
    }

    @Test func `a fetcher that cancels its task cancels no caller`() async throws {
        let cancelling = ClosureFetcher(respond: { request, _ in
            withUnsafeCurrentTask { $0?.cancel() }
            return DownloadResponse(body: Data(try makePNG()), url: request.url)
        })
        let loader = self.fixture.makeLoader { $0.fetcher = cancelling }
        let url = self.scripted.url("/a")
        await #expect(throws: LoadError.self) { try await loader.image(for: url) }
    }

    @Test func `a fetch that does not hear of its cancellation holds up no later load`() async throws {
        let gate = Gate()
        let picture = Data(try makePNG())
        let count = Box(0)
        let fetcher = ClosureFetcher(respond: { request, _ in
            let number = count.value ?? 0
            count.value = number + 1
            if number == 0 { await gate.wait() }
            return DownloadResponse(body: picture, url: request.url)
        })
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        let url = self.scripted.url("/a")
        let first = Task { try await loader.image(for: url) }
        await until { count.value == 1 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        let second = await outcome { try await loader.image(for: url) }
        #expect(second?.success?.width == 8)
        await gate.open()
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
        let plain = ImageRequest(
            url: self.scripted.url("/a"),
            originalCaching: CacheUse(query: .all, store: .none)
        )
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

    /// The preview waits for a lane that another decode has.
    @Test func `a picture does not wait for the lane of its previews`() async throws {
        let gate = Gate()
        let body = try PreviewTests.progressiveJPEG()
        let middle = body.count / 2
        let origin = ScriptedOrigin([
            "/a": .pieces([Array(body[..<middle]), Array(body[middle...])], movedBy: [gate]),
            "/b": .body(try makePNG()),
        ])
        let fixture = try LoaderFixture(origin: origin)
        let latch = Latch()
        let loader = fixture.makeLoader {
            $0.laneCount = 2
            $0.coders = CoderRegistry(coders: [
                JPEGCoder(), CountingCoder(PNGCoder(), fixture.decodes, heldBy: latch),
            ])
        }
        let shown = Box(false)
        let request = ImageRequest(url: origin.url("/a"), options: [.previews])
        let end = Task {
            await outcome {
                for try await event in loader.events(for: request) {
                    if case .preview = event { shown.value = true }
                }
                return true
            }
        }
        await until { shown.value == true }
        let other = Task { try await loader.image(for: origin.url("/b")) }
        await until { fixture.decodes.count == 1 }
        await gate.open()
        #expect(await end.value?.success == true)
        latch.open()
        _ = try await other.value
    }
}
