// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct CoalescingTests {
    let fixture: LoaderFixture
    let gate = Gate()
    let origin: ScriptedOrigin

    init() throws {
        self.origin = ScriptedOrigin(["/image": .held(by: self.gate, body: try makePNG())])
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    @Test func `a thousand tasks make one request and one decode`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/image"))
        try await withThrowingTaskGroup(of: Image.self) { group in
            for _ in 0..<1_000 { group.addTask { try await loader.image(for: request) } }
            await until { await loader.waiterCount == 1_000 }
            await self.gate.open()
            var images: [PixelBuffer] = []
            for try await image in group { images.append(image.pixels) }
            #expect(images.count == 1_000)
            #expect(images.allSatisfy { $0 === images[0] })
        }
        #expect(self.origin.requestCount(for: "/image") == 1)
        #expect(self.fixture.decodes.count == 1)
        #expect(await loader.loadCount == 0)
    }

    @Test func `loads that differ only in what is kept or shown are one, which keeps what any of them wants`()
        async throws
    {
        let loader = self.fixture.makeLoader()
        let url = self.origin.url("/image")
        let plain = ImageRequest(source: .init(url: url), caching: .init(originals: .none))
        let others = [
            ImageRequest(source: .init(url: url), caching: .init(originals: CacheUse(query: .none, store: .all))),
            ImageRequest(source: .init(url: url), caching: .init(originals: .none), options: [.keepData]),
            ImageRequest(source: .init(url: url), caching: .init(originals: .none), options: [.waitForStore]),
            ImageRequest(source: .init(url: url), caching: .init(originals: .none), options: [.previews]),
        ]
        async let first = loader.response(for: plain)
        await self.origin.waitForRequests(for: "/image")
        async let kept = loader.response(for: others[0])
        async let handedOut = loader.response(for: others[1])
        async let stored = loader.response(for: others[2])
        async let shown = loader.response(for: others[3])
        await until { await loader.waiterCount == 5 }
        await self.gate.open()
        let images = try await [first, kept, handedOut, stored, shown]
        #expect(images.allSatisfy { $0.image.pixels === images[0].image.pixels })
        #expect(images.map { $0.data != nil } == [false, false, true, false, false])
        #expect(self.origin.requestCount(for: "/image") == 1)
        #expect(self.fixture.decodes.count == 1)
        #expect(await loader.cache.tiers(holding: plain.key, in: .all) == .all)
    }

    /// Returns the responses of a load and of another one that joins it while it decodes.
    private func responses(
        of requests: [ImageRequest],
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) async throws -> (LoaderActor, [ImageResponse]) {
        await self.gate.open()
        let latch = Latch()
        let loader = self.fixture.makeLoader(heldBy: latch, .neverRevalidate, change)
        let first = Task { try await loader.response(for: requests[0]) }
        await until { self.fixture.decodes.count == 1 }
        let second = Task { try await loader.response(for: requests[1]) }
        await until { await loader.waiterCount == 2 }
        latch.open()
        let responses = try await [first.value, second.value]
        #expect(self.origin.requestCount(for: "/image") == 1)
        return (loader, responses)
    }

    @Test func `a load that waits for the store and joins late hears that it failed`() async throws {
        let url = self.origin.url("/image")
        let requests = [ImageRequest(url: url), ImageRequest(url: url, options: [.waitForStore])]
        let (_, responses) = try await self.responses(of: requests) { $0.disk?.sizeLimit = 10 }
        #expect(responses.map { $0.storeError != nil } == [false, true])
    }

    @Test func `a load that wants the bytes stored and joins late has them stored`() async throws {
        let url = self.origin.url("/image")
        let plain = ImageRequest(
            source: .init(url: url),
            caching: .init(originals: CacheUse(query: .all, store: .none))
        )
        let requests = [plain, ImageRequest(url: url, options: [.waitForStore])]
        let (loader, responses) = try await self.responses(of: requests)
        #expect(responses.allSatisfy { $0.storeError == nil })
        #expect(await loader.cache.contains(plain.sourceKey, in: .disk))
    }

    /// Holds a load in its decode, fetches other representations meanwhile, and lets a last load join that waits for
    /// the store.
    ///
    /// - Returns: The loader, the request of the last load, and its response.
    private func latecomer(
        _ policy: CachePolicy,
        _ others: [ScriptedResponse],
        storing tiers: CacheTiers = .all,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) async throws -> (loader: LoaderActor, request: ImageRequest, response: ImageResponse) {
        let fields: HeaderFields = ["Cache-Control": "max-age=600", "Vary": "Accept-Language"]
        self.origin.script("/varying", sequence: [.body(try makePNG(width: 10), headers: fields)] + others)
        let latch = Latch()
        let loader = self.fixture.makeLoader(heldBy: latch, policy, change)
        func request(_ language: String, _ agent: String) -> ImageRequest {
            ImageRequest(
                url: self.origin.url("/varying"),
                headers: ["Accept-Language": language, "User-Agent": agent]
            )
        }
        var first = request("de", "a")
        first.caching.originals = CacheUse(query: .all, store: tiers)
        let held = Task { [first] in try await loader.response(for: first) }
        await until { self.fixture.decodes.count == 1 }
        // The first of `others` is another representation, and the second replaces the same one.
        let languages = ["en", "de"]
        for index in others.indices {
            var reload = request(languages[index], "b")
            reload.cachePolicy = index == 0 ? nil : .reload
            _ = try await loader.data(for: reload)
        }
        var late = request("de", "a")
        late.options = [.waitForStore]
        let latecomer = Task { [late] in try await loader.response(for: late) }
        await until { await loader.waiterCount == 2 }
        latch.open()
        _ = try await held.value
        return (loader, late, try await latecomer.value)
    }

    private func other(width: Int, varyingOn names: String = "Accept-Language") throws -> ScriptedResponse {
        .body(try makePNG(width: width), headers: ["Cache-Control": "max-age=600", "Vary": names])
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness, .revalidate])
    func `a load that joins late hears of its store although another representation was fetched`(
        policy: CachePolicy
    ) async throws {
        let late = try await self.latecomer(policy, [self.other(width: 12)]) { $0.disk?.sizeLimit = 10 }
        #expect(late.response.image.width == 10)
        #expect(late.response.storeError != nil)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness, .revalidate])
    func `a load that joins late has its bytes stored although another representation was fetched`(
        policy: CachePolicy
    ) async throws {
        let late = try await self.latecomer(policy, [self.other(width: 12)], storing: .memory)
        #expect(late.response.storeError == nil)
        var request = late.request
        request.cachePolicy = policy == .honorFreshness ? policy : .cacheOnly
        #expect(try await late.loader.dataResponse(for: request).source == .disk)
    }

    @Test func `a load that joins late puts back no list in Vary that a reload has replaced`() async throws {
        let others = try [self.other(width: 12), self.other(width: 13, varyingOn: "Accept-Language, Accept")]
        let late = try await self.latecomer(.honorFreshness, others)
        #expect(late.response.image.width == 10)
        var request = late.request
        request.headers["User-Agent"] = "c"
        #expect(try await late.loader.data(for: request) == Data(makePNG(width: 13)))
    }

    @Test func `a load that wants the bytes and joins late gets them`() async throws {
        let url = self.origin.url("/image")
        let requests = [ImageRequest(url: url), ImageRequest(url: url, options: [.keepData])]
        let (_, responses) = try await self.responses(of: requests)
        #expect(responses.map(\.data) == [nil, Data(try makePNG())])
    }

    @Test func `cancelling all but one disturbs nothing`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/image"))
        let tasks = (0..<1_000).map { _ in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 1_000 }
        for task in tasks.dropFirst() { task.cancel() }
        for task in tasks.dropFirst() {
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        await self.gate.open()
        #expect(try await tasks[0].value.width == 8)
        #expect(self.origin.requestCount(for: "/image") == 1)
        #expect(self.fixture.decodes.count == 1)
    }

    @Test func `cancelling all cancels the request and the next load starts afresh`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/image"))
        let tasks = (0..<1_000).map { _ in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 1_000 }
        await self.origin.waitForRequests(for: "/image")
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        await self.origin.waitForCancellations(for: "/image")
        #expect(self.origin.cancellationCount(for: "/image") == 1)
        #expect(await loader.loadCount == 0)
        await self.gate.open()
        #expect(try await loader.image(for: request).width == 8)
        #expect(self.origin.requestCount(for: "/image") == 2)
    }

    @Test func `cancel all ends every load`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/image"))
        let tasks = (0..<10).map { _ in Task { try await loader.image(for: request) } }
        await until { await loader.waiterCount == 10 }
        await loader.cancelAll()
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    }

    @Test func `a task that is cancelled already never loads`() async throws {
        let loader = self.fixture.makeLoader()
        let request = ImageRequest(url: self.origin.url("/image"))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await loader.image(for: request)
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(self.origin.requestCount(for: "/image") == 0)
    }

    @Test func `different headers are different loads`() async throws {
        await self.gate.open()
        let loader = self.fixture.makeLoader()
        let url = self.origin.url("/image")
        _ = try await loader.image(for: ImageRequest(url: url, headers: ["Authorization": "a"]))
        _ = try await loader.image(for: ImageRequest(url: url, headers: ["Authorization": "b"]))
        _ = try await loader.image(for: ImageRequest(url: url, headers: ["authorization": "a"]))
        #expect(self.origin.requestCount(for: "/image") == 2)
    }

    @Test func `random cancellation loses nothing`() async throws {
        await self.gate.open()
        let loader = self.fixture.makeLoader()
        let origin = self.origin
        await withTaskGroup { group in
            for index in 0..<2_000 {
                group.addTask {
                    let width = index % 7 + 1
                    let request = ImageRequest(
                        url: origin.url("/image"),
                        thumbnail: .fit(width: width, height: width),
                        cachePolicy: index % 5 == 0 ? .reload : nil
                    )
                    let task = Task { try await loader.image(for: request) }
                    if index % 3 == 0 { task.cancel() }
                    switch await task.result {
                    case .success(let image): #expect(image.width <= width)
                    case .failure(let error): #expect(error is CancellationError)
                    }
                }
            }
        }
        #expect(await loader.loadCount == 0)
    }
}
