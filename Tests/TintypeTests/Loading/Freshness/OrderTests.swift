// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Newer bodies and images, which older ones must not replace.
@Suite(.waiting, .timeLimit(.minutes(5))) struct OrderTests {
    let fixture: LoaderFixture
    let scripted = ScriptedOrigin()
    let clock = TestClock()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
    }

    private func makeLoader(
        _ policy: CachePolicy = .honorFreshness,
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        self.fixture.makeLoader(policy, by: self.clock, change)
    }

    @Test func `a reload replaces a response that did not vary when it was stored`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.makeLoader()
        var request = ImageRequest(
            url: origin.url,
            headers: ["Accept-Language": "de"],
            options: [.waitForStore]
        )
        _ = try await loader.data(for: request)
        origin.revise()
        origin.vary(on: "Accept-Language")
        request.cachePolicy = .reload
        let reloaded = try await loader.data(for: request)
        request.cachePolicy = nil
        #expect(try await loader.data(for: request) == reloaded)
        #expect(try await self.makeLoader().data(for: request) == reloaded)
    }

    @Test func `a stale response that did not vary is not validated for ever`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let loader = self.makeLoader()
        let request = ImageRequest(
            url: origin.url,
            headers: ["Accept-Language": "de"],
            options: [.waitForStore]
        )
        _ = try await loader.data(for: request)
        origin.revise()
        origin.vary(on: "Accept-Language")
        self.clock.advance(by: 100)
        for _ in 0..<3 { #expect(try await loader.data(for: request) == Data(makePNG(width: 13))) }
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [CachePolicy.neverRevalidate, .honorFreshness])
    func `a load that begins after a reload joins none with older bytes`(
        policy: CachePolicy
    )
        async throws
    {
        let latch = Latch()
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.fixture.makeLoader(heldBy: latch, policy)
        let request = ImageRequest(url: origin.url)
        let old = Task { try await loader.image(for: request) }
        await until { self.fixture.decodes.count == 1 }
        origin.revise()
        let reloaded = try await loader.data(for: ImageRequest(url: origin.url, cachePolicy: .reload))
        #expect(reloaded == Data(try makePNG(width: 11)))
        let new = Task { try await loader.image(for: request) }
        await until { await loader.waiterCount == 2 }
        latch.open()
        #expect(try await old.value.width == 10)
        #expect(try await new.value.width == 11)
    }

    @Test func `a reload joins none whose answer is here already`() async throws {
        let latch = Latch()
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.fixture.makeLoader(heldBy: latch)
        let request = ImageRequest(url: origin.url, cachePolicy: .reload)
        let old = Task { try await loader.image(for: request) }
        await until { self.fixture.decodes.count == 1 }
        origin.revise()
        let new = Task { try await loader.image(for: request) }
        await until { await loader.waiterCount == 2 }
        latch.open()
        #expect(try await old.value.width == 10)
        #expect(try await new.value.width == 11)
    }

    @Test func `an image that is kept for a caller that left is known all the same`() async throws {
        let gate = Gate()
        let origin = RevisingOrigin(at: self.scripted)
        let tier = HeldTier(
            self.fixture.directory.url(of: "held"),
            willStore: { key in
                if key.isDerived { await gate.wait() }
            }
        )
        // Both loads must wait for one decode.
        let latch = Latch()
        let loader = self.makeLoader(.neverRevalidate) {
            $0.cache = CacheActor(tiers: [tier])
            $0.coders = CoderRegistry(coders: [
                JPEGCoder(), CountingCoder(PNGCoder(), self.fixture.decodes, heldBy: latch),
            ])
        }
        let kept = ImageRequest(
            source: .init(url: origin.url),
            rendering: .init(thumbnail: .stretch(width: 4, height: 3)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        var notKept = kept
        notKept.caching.variants = CacheUse(query: .all, store: .none)
        let notKeptRequest = notKept
        let first = Task { try await loader.response(for: kept) }
        let second = Task { try await loader.response(for: notKeptRequest) }
        await until { await loader.waiterCount == 2 }
        latch.open()
        await until { tier.storeCount.count == 1 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        await until { await loader.waiterCount == 1 }
        await gate.open()
        let old = try await second.value.metadata.bodyDigest
        origin.revise()
        let new = try await loader.dataResponse(
            for: ImageRequest(url: origin.url, cachePolicy: .reload)
        )
        #expect(new.metadata.bodyDigest != old)
        #expect(try await loader.response(for: kept).metadata.bodyDigest == new.metadata.bodyDigest)
    }

    @Test func `a response from a clock that was ahead is not fresh until then`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=60"], at: self.scripted)
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        self.clock.advance(by: 365 * 86_400)
        _ = try await self.makeLoader().image(for: request)
        self.clock.advance(by: -365 * 86_400)
        origin.revise()
        #expect(try await self.makeLoader().image(for: request).width == 11)
        self.clock.advance(by: 3_600)
        #expect(try await self.makeLoader().image(for: request).width == 11)
    }

    @Test func `a tag that is a star confirms nothing`() async throws {
        let revision = Box(0)
        self.scripted.script(
            "/a",
            .answer { request in
                if request.headers["If-None-Match"] == "*" {
                    return .body([], status: 304, headers: ["ETag": "*"])
                }
                let body = try? makePNG(width: 10 + (revision.value ?? 0))
                return .body(body ?? [], headers: ["ETag": "*"])
            }
        )
        let loader = self.makeLoader(.revalidate)
        let request = ImageRequest(url: self.scripted.url("/a"), options: [.waitForStore])
        #expect(try await loader.image(for: request).width == 10)
        revision.value = 1
        #expect(try await loader.image(for: request).width == 11)
    }

    @Test func `bodies of one source are in order whatever the policies of their loads`() async throws {
        let gate = Gate()
        self.scripted.script("/a", .body(try makePNG(width: 11), headers: ["Cache-Control": "max-age=600"]))
        self.scripted.script("/a", sequence: [.held(by: gate, body: try makePNG(width: 10))])
        let loader = self.makeLoader(.neverRevalidate)
        let plain = ImageRequest(
            url: self.scripted.url("/a"),
            headers: ["Accept-Language": "de"],
            options: [.waitForStore]
        )
        var asking = plain
        asking.cachePolicy = .revalidate
        let newRequest = asking
        let old = Task { try await loader.image(for: plain) }
        await self.scripted.waitForRequests(1, for: "/a")
        let new = Task { try await loader.image(for: newRequest) }
        await until { await loader.queueCount(of: newRequest) == 1 }
        await gate.open()
        #expect(try await old.value.width == 10)
        #expect(try await new.value.width == 11)
        #expect(try await loader.image(for: plain).width == 11)
        #expect(try await loader.data(for: plain) == Data(makePNG(width: 11)))
        #expect(try await self.makeLoader(.neverRevalidate).image(for: plain).width == 11)
    }

    @Test func `a reload is not followed by an older response to a request without header fields`() async throws {
        let gate = Gate()
        let headers: HeaderFields = ["Cache-Control": "max-age=600"]
        self.scripted.script("/a", .body(try makePNG(width: 11), headers: headers))
        self.scripted.script("/a", sequence: [.held(by: gate, body: try makePNG(width: 10))])
        let loader = self.makeLoader(.neverRevalidate)
        let plain = ImageRequest(url: self.scripted.url("/a"), options: [.waitForStore])
        var reload = ImageRequest(url: plain.url, headers: ["Accept-Language": "de"], options: [.waitForStore])
        reload.cachePolicy = .reload
        let reloadRequest = reload
        let old = Task { try await loader.image(for: plain) }
        await self.scripted.waitForRequests(1, for: "/a")
        let new = Task { try await loader.image(for: reloadRequest) }
        await until { await loader.queueCount(of: plain) == 1 }
        await gate.open()
        #expect(try await old.value.width == 10)
        #expect(try await new.value.width == 11)
        // This load would find the response to the request without fields.
        var honoring = reload
        honoring.cachePolicy = .honorFreshness
        #expect(try await loader.data(for: honoring) == Data(makePNG(width: 11)))
    }

    @Test func `loads that name their bytes apart ask the origin at the same time`() async throws {
        let gate = Gate()
        self.scripted.script("/a", .held(by: gate, body: try makePNG()))
        let (loader, url) = (self.makeLoader(.neverRevalidate), self.scripted.url("/a"))
        async let german = loader.image(for: ImageRequest(url: url, headers: ["Accept-Language": "de"]))
        async let english = loader.image(for: ImageRequest(url: url, headers: ["Accept-Language": "en"]))
        await self.scripted.waitForRequests(2, for: "/a")
        await gate.open()
        #expect(try await [german, english].map(\.width) == [8, 8])
    }

    /// The reasons why a body that replaces another one is not stored.
    enum NoStore: CaseIterable {
        case tooLarge, tooLargeInBackground, notWanted
    }

    @Test(arguments: NoStore.allCases) func `a reload that is not stored leaves no older bytes on disk`(
        reason: NoStore
    ) async throws {
        let large = try makePNG(width: 11) + [UInt8](repeating: 0, count: 9_000)
        self.scripted.script("/a", .body(try makePNG(width: 12)))
        self.scripted.script("/a", sequence: [.body(try makePNG()), .body(large)])
        let loader = self.makeLoader(.neverRevalidate) { $0.disk?.sizeLimit = 8_000 }
        var request = ImageRequest(url: self.scripted.url("/a"), options: [.waitForStore])
        _ = try await loader.data(for: request)
        request.cachePolicy = .reload
        if reason != .tooLarge { request.options = [] }
        if reason == .notWanted { request.caching.originals = CacheUse(query: .all, store: .memory) }
        let reloaded = try await loader.dataResponse(for: request)
        #expect((reloaded.storeError != nil) == (reason == .tooLarge))
        await loader.waitForPendingStores()
        request.cachePolicy = .cacheOnly
        let reading = request
        let error = await #expect(throws: LoadError.self) { _ = try await loader.data(for: reading) }
        #expect(error?.code == .notInCache)
    }

    @Test func `requests that select the same response get the newest of it`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = self.makeLoader()
        func request(_ language: String?, _ policy: CachePolicy? = nil) -> ImageRequest {
            ImageRequest(
                url: origin.url,
                headers: language.map { ["Accept-Language": $0] } ?? [:],
                options: [.waitForStore],
                cachePolicy: policy
            )
        }
        for language in ["de", "fr", nil] { _ = try await loader.image(for: request(language)) }
        #expect(origin.requests.count == 1)
        origin.revise()
        _ = try await loader.image(for: request("en", .reload))
        for language in ["de", "fr", nil] {
            #expect(try await loader.image(for: request(language)).width == 11)
            #expect(try await loader.data(for: request(language)) == Data(makePNG(width: 11)))
        }
        #expect(origin.requests.count == 2)
    }

    @Test func `a response that varies replaces none that another request selects`() async throws {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        origin.vary(on: "Accept-Language")
        let loader = self.makeLoader()
        let requests = ["de", "long"].map {
            ImageRequest(url: origin.url, headers: ["Accept-Language": $0], options: [.waitForStore])
        }
        for request in requests { _ = try await loader.image(for: request) }
        var reload = requests[0]
        reload.cachePolicy = .reload
        origin.revise()
        #expect(try await loader.image(for: reload).width == 13)
        #expect(try await loader.response(for: requests[1]).source == .memory)
        #expect(try await loader.image(for: requests[1]).width == 14)
    }

    @Test func `an entry that the nearest of several tiers has lost is not older in the next`() async throws {
        let origin = RevisingOrigin(at: self.scripted)
        let disks = ["near", "far"].map { DiskCache(.init(directory: self.fixture.directory.url(of: $0))) }
        let request = ImageRequest(url: origin.url, options: [.waitForStore])
        _ = try await self.makeLoader(.neverRevalidate) { $0.cache = CacheActor(disk: disks[1]) }.data(for: request)
        origin.revise()
        let loader = self.makeLoader(.neverRevalidate) { $0.cache = CacheActor(tiers: disks) }
        var reload = request
        reload.cachePolicy = .reload
        _ = try await loader.data(for: reload)
        try await disks[0].remove(request.sourceKey)
        #expect(try await loader.data(for: request) == Data(makePNG(width: 11)))
    }

    /// Simultaneous loads of any kind never return an older image than a reload that ended before they began.
    @Test(arguments: 0..<30) func `after a reload nothing older is given out`(
        seed: UInt64
    )
        async throws
    {
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        var random = SeededGenerator(seed: seed)
        let policy: CachePolicy = seed.isMultiple(of: 2) ? .neverRevalidate : .honorFreshness
        let loader = self.fixture.makeLoader { configuration in
            configuration.cachePolicy = policy
            if seed % 3 == 0 { configuration.memory.costLimit = 1 }
            if seed % 5 == 0 { configuration.disk = nil }
            if seed % 7 == 0 { configuration.downloads.bodyMemory = 1 }
        }
        let revisions = Dictionary(
            uniqueKeysWithValues: try (0..<500).map {
                (BodyDigest.value(of: Data(try makePNG(width: 10 + $0))), $0)
            }
        )
        let floor = Box(0)
        let failures = Box<[String]>([])
        let check: @Sendable (UInt64?, Int, String, Bool) -> Void = { digest, before, what, raises in
            guard let digest, let revision = revisions[digest] else {
                failures.value = (failures.value ?? []) + ["unknown \(what)"]
                return
            }
            if revision < before {
                failures.value = (failures.value ?? []) + ["\(what): \(revision) after \(before)"]
            }
            if raises { floor.value = max(floor.value ?? 0, revision) }
        }
        var tasks: [Task<Void, any Error>] = []
        for index in 0..<300 {
            if Int.random(in: 0..<6, using: &random) == 0 { origin.revise() }
            let requestPolicy: CachePolicy? =
                [nil, nil, nil, .reload, .revalidate].randomElement(using: &random) ?? nil
            let kind = Int.random(in: 0..<4, using: &random)
            var request = ImageRequest(url: origin.url, cachePolicy: requestPolicy)
            if kind == 1 { request.thumbnail = .stretch(width: 4, height: 3) }
            if kind == 2 { request.thumbnail = .stretch(width: 3, height: 3) }
            if kind == 1 { request.caching.variants = CacheUse() }
            if Int.random(in: 0..<5, using: &random) == 0 { request.options.insert(.waitForStore) }
            if Int.random(in: 0..<5, using: &random) == 0 { request.options.insert(.keepData) }
            let yields = Int.random(in: 0..<40, using: &random)
            let asks = requestPolicy != nil
            let final = request
            tasks.append(
                Task {
                    for _ in 0..<yields { await Task.yield() }
                    let before = floor.value ?? 0
                    let name = "\(index) kind \(kind) policy \(String(describing: requestPolicy))"
                    if kind == 3 {
                        let response = try await loader.dataResponse(for: final)
                        check(response.metadata.bodyDigest, before, name, asks)
                        if BodyDigest.value(of: response.data) != response.metadata.bodyDigest {
                            failures.value = (failures.value ?? []) + ["bytes of another body \(name)"]
                        }
                    } else {
                        let response = try await loader.response(for: final)
                        check(response.metadata.bodyDigest, before, name, asks)
                        if let data = response.data, BodyDigest.value(of: data) != response.metadata.bodyDigest {
                            failures.value = (failures.value ?? []) + ["data of another body \(name)"]
                        }
                    }
                }
            )
            if Int.random(in: 0..<4, using: &random) == 0 {
                tasks.randomElement(using: &random)?.cancel()
            }
            if Int.random(in: 0..<4, using: &random) == 0 { await Task.yield() }
        }
        for task in tasks { _ = await task.result }
        #expect(failures.value == [])
        #expect(await loader.loadCount == 0)
        await until { await loader.bytesWaiterCount == 0 }
        await until { await loader.downloads.counters.bodyBytes == 0 }
        await loader.shutdown()
    }
}
