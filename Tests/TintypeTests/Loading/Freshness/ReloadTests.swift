// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeConcurrency
import TintypeOrderStorm
import TintypeTestSupport
import TintypeTestTraits

/// Reloads leave no older images.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ReloadTests {
    private static let tiers = [CacheTiers.none, .memory, .disk, .all]
    private static let policies = [CachePolicy.neverRevalidate, .honorFreshness, .revalidate]

    /// The forms in which a load may find an image.
    private enum Form: CaseIterable {
        case image, thumbnail, data, encoded
    }

    private let scripted = ScriptedOrigin()

    private func digest(_ form: Form, of request: ImageRequest, from loader: LoaderActor) async throws -> UInt64? {
        var request = request
        if form == .thumbnail { request.thumbnail = .stretch(width: 4, height: 3) }
        switch form {
        case .image, .thumbnail: return try await loader.response(for: request).metadata.bodyDigest
        case .data: return try await loader.dataResponse(for: request).metadata.bodyDigest
        case .encoded: return try await loader.encoded(request, as: .png).metadata.bodyDigest
        }
    }

    /// Checks that loads find nothing, or only the body of the reload.
    private func expectNothingOlder(
        than body: UInt64?,
        of request: ImageRequest,
        in loader: LoaderActor,
        _ note: String
    ) async throws {
        for policy in Self.policies + [.cacheOnly] {
            for form in Form.allCases {
                var request = request
                request.cachePolicy = policy
                do {
                    let found = try await self.digest(form, of: request, from: loader)
                    #expect(found == body, "\(form) under \(policy) after \(note)")
                } catch let error as LoadError where error.code == .notInCache {
                    #expect(policy == .cacheOnly)
                }
            }
        }
    }

    @Test(arguments: Self.policies, Self.tiers)
    func `a reload leaves no older image, whichever tiers store its answer`(
        policy: CachePolicy,
        tiers: CacheTiers
    ) async throws {
        let headers: [HeaderFields] = [[:], ["Accept-Language": "de"]]
        for (variants, fields) in zip([CacheTiers.none, .all, .all, .none], headers + headers) {
            for (isThumbnail, isAnotherLoader) in [(false, true), (true, false)] {
                let note = "variants \(variants), \(fields.count) fields, thumbnail \(isThumbnail)"
                let fixture = try LoaderFixture(origin: self.scripted)
                let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
                var loader = fixture.makeLoader { $0.cachePolicy = policy }
                let request = ImageRequest(
                    source: .init(url: origin.url, headers: fields),
                    caching: .init(variants: .all),
                    options: .waitForStore
                )
                for policy in Self.policies {
                    for form in Form.allCases {
                        var request = request
                        request.cachePolicy = policy
                        _ = try await self.digest(form, of: request, from: loader)
                    }
                }
                if isAnotherLoader { loader = fixture.makeLoader { $0.cachePolicy = policy } }
                origin.revise()
                var reload = request
                reload.cachePolicy = .reload
                reload.caching.originals = CacheUse(query: .all, store: tiers)
                reload.caching.variants = CacheUse(query: .all, store: variants)
                let body = try await self.digest(isThumbnail ? .thumbnail : .image, of: reload, from: loader)
                #expect(body == BodyDigest.value(of: Data(try makePNG(width: 11))))
                try await self.expectNothingOlder(than: body, of: request, in: loader, note)
                try await self.expectNothingOlder(
                    than: body,
                    of: request,
                    in: fixture.makeLoader { $0.cachePolicy = policy },
                    note
                )
            }
        }
    }

    @Test(arguments: Self.policies, Form.allCases.map { $0 == .encoded })
    func `a reload whose answer may not be stored leaves no older image`(
        policy: CachePolicy,
        isEncoded: Bool
    ) async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        let origin = RevisingOrigin(["Cache-Control": "max-age=600"], at: self.scripted)
        let loader = fixture.makeLoader { $0.cachePolicy = policy }
        let request = ImageRequest(url: origin.url, headers: ["Accept-Language": "de"], options: .waitForStore)
        for form in Form.allCases { _ = try await self.digest(form, of: request, from: loader) }
        origin.revise()
        origin.setHeaders(["Cache-Control": "no-store"])
        var reload = request
        reload.cachePolicy = .reload
        reload.caching.originals = .memory
        let body = try await self.digest(isEncoded ? .encoded : .data, of: reload, from: loader)
        try await self.expectNothingOlder(than: body, of: request, in: loader, "no-store")
    }

    @Test func `a list in Vary that comes back brings no older image back`() async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        let lists = ["Accept-Language", "Accept-Language, Accept", "Accept-Language", "Accept-Language"]
        self.scripted.script(
            "/a",
            sequence: try lists.enumerated().map { index, list in
                .body(
                    try makePNG(width: 10 + index),
                    headers: ["Cache-Control": "max-age=600", "Vary": list, "ETag": "\"\(index)\""]
                )
            }
        )
        func load(_ language: String, _ policy: CachePolicy?) async throws -> Int {
            let loader = fixture.makeLoader { $0.cachePolicy = .honorFreshness }
            let request = ImageRequest(
                url: self.scripted.url("/a"),
                headers: ["Accept-Language": language],
                options: .waitForStore,
                cachePolicy: policy
            )
            return try await loader.image(for: request).width
        }
        #expect(try await load("de", nil) == 10)
        #expect(try await load("de", .reload) == 11)
        #expect(try await load("en", nil) == 12)
        #expect(try await load("de", nil) == 13)
        #expect(try await load("en", .cacheOnly) == 12)
        #expect(try await load("de", .cacheOnly) == 13)
    }

    @Test(arguments: [LoadOptions.waitForStore, []])
    func `a response is found although another process has stored its list in Vary at the same time`(
        options: LoadOptions
    ) async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        self.scripted.script(
            "/a",
            .body(try makePNG(), headers: ["Cache-Control": "max-age=600", "Vary": "Accept-Language"])
        )
        let disk = DiskCache.Configuration(directory: fixture.directory.url(of: "cache"))
        let rival = DiskCache(disk)
        let tier = HeldTier(
            DiskCache(disk),
            didStore: { key, data in
                guard key.text.contains("selectors") else { return }
                let names = String(decoding: data, as: UTF8.self).split(separator: "\n").dropFirst()
                let list = Data((["rival"] + names).joined(separator: "\n").utf8)
                try? await rival.store(list, metadata: EntryMetadata(), for: key)
            }
        )
        let loader = fixture.makeLoader {
            $0.cachePolicy = .honorFreshness
            $0.cache = CacheActor(tiers: [tier])
        }
        var request = ImageRequest(
            url: self.scripted.url("/a"),
            headers: ["Accept-Language": "de"],
            options: options
        )
        _ = try await loader.data(for: request)
        await loader.shutdown()
        request.cachePolicy = .cacheOnly
        #expect(try await fixture.makeLoader().dataResponse(for: request).source == .disk)
    }

    @Test(arguments: [false, true])
    func `the file of an older variant that is stored while a reload ends is not served`(
        isRemovedMeanwhile: Bool
    ) async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        self.scripted.script("/a", .body(try makePNG(width: 11)))
        self.scripted.script("/a", sequence: [.body(try makePNG(width: 10))])
        let thumbnail = ImageRequest(
            source: .init(url: self.scripted.url("/a")),
            rendering: .init(thumbnail: .stretch(width: 6, height: 4)),
            caching: .init(variants: .all)
        )
        let (loaderBox, found) = (Box<LoaderActor>(), Box<[Bool]>([]))
        let disk = DiskCache.Configuration(directory: fixture.directory.url(of: "cache"))
        let base = DiskCache(disk)
        // The second body arrives before the disk writes the variant of the first. The lookup runs before that store
        // ends.
        let reload: @Sendable (CacheKey) async -> Void = { key in
            guard key == thumbnail.key, let loader = loaderBox.value else { return }
            var reload = ImageRequest(url: thumbnail.url, cachePolicy: .reload)
            // The loader forgets a source if it has stored no image of it.
            reload.caching.originals = .none
            let image = try? await loader.image(for: reload)
            found.value?.append(image?.width == 11)
        }
        let (isFound, calls) = (Gate(), TaskOwner())
        let look: @Sendable (CacheKey, Data) async -> Void = { key, _ in
            guard key == thumbnail.key, let loader = loaderBox.value else { return }
            found.value?.append((try? await base.file(for: key)) != nil)
            let call = calls.run("file") {
                found.value?.append((try? await loader.cachedFile(for: thumbnail)) == nil)
            }
            await isRemovedMeanwhile ? isFound.wait() : call.value
        }
        let open: @Sendable (CachedFile) async -> Void = { _ in
            await isFound.open()
            if isRemovedMeanwhile { await loaderBox.value?.waitForPendingStores() }
        }
        let tier = HeldTier(base, willStore: reload, didFind: open, didStore: look)
        let loader = fixture.makeLoader { $0.cache = CacheActor(tiers: [tier]) }
        loaderBox.value = loader
        _ = try await loader.image(for: thumbnail)
        await loader.waitForPendingStores()
        await calls.waitForAll()
        loaderBox.value = nil
        #expect(found.value == [true, true, true])
    }

    @Test func `an older variant that is stored while another source replaces its response is not served`() async throws
    {
        let fixture = try LoaderFixture(origin: self.scripted)
        let bodies = try (10..<14).map { try makePNG(width: $0) }
        self.scripted.script("/a", .body(bodies[3]))
        self.scripted.script("/a", sequence: bodies.prefix(3).map { .body($0) })
        let german: HeaderFields = ["Accept-Language": "de"]
        let thumbnail = ImageRequest(
            source: .init(url: self.scripted.url("/a"), headers: german),
            rendering: .init(thumbnail: .stretch(width: 6, height: 4)),
            caching: .init(variants: .all, policy: .neverRevalidate)
        )
        let (loaderBox, found) = (Box<LoaderActor>(), Box<[UInt64?]>([]))
        let disk = DiskCache.Configuration(directory: fixture.directory.url(of: "cache"))
        // Two more bodies arrive before the disk writes the variant of the first. The last one is for other header
        // fields.
        let tier = HeldTier(
            DiskCache(disk),
            willStore: { key in
                guard key == thumbnail.key, let loader = loaderBox.value, found.value?.isEmpty ?? false else { return }
                for headers in [german, ["Accept-Language": "en"]] {
                    var reload = ImageRequest(url: thumbnail.url, headers: headers, cachePolicy: .reload)
                    reload.caching.originals = .none
                    let response = try? await loader.response(for: reload)
                    found.value?.append(response?.metadata.bodyDigest)
                }
            },
            didStore: { key, _ in
                guard key == thumbnail.key, let loader = loaderBox.value, found.value?.count == 2 else { return }
                let response = try? await loader.response(for: thumbnail)
                found.value?.append(response?.metadata.bodyDigest)
            }
        )
        let loader = fixture.makeLoader {
            $0.cache = CacheActor(tiers: [tier])
            $0.cachePolicy = .honorFreshness
        }
        loaderBox.value = loader
        _ = try await loader.image(for: thumbnail)
        await loader.waitForPendingStores()
        loaderBox.value = nil
        let newest = bodies.dropFirst().map { BodyDigest.value(of: Data($0)) }
        let looks = try #require(found.value)
        #expect(Array(looks.prefix(3)) == newest)
        // The load in `didStore` may store its own variant, which repeats the lookup.
        #expect(looks.dropFirst(3).allSatisfy { $0 == newest.last })
    }

    @Test func `a reload whose bytes cannot be serialized leaves no older ones on disk`() async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        self.scripted.script("/a", .body(try makePNG(width: 11)))
        self.scripted.script("/a", sequence: [.body(try makePNG(width: 10))])
        let request = ImageRequest(url: self.scripted.url("/a"), options: .waitForStore)
        _ = try await fixture.makeLoader().data(for: request)
        var reload = request
        reload.cachePolicy = .reload
        reload.caching.originalSerializer = Named("fails") { _, _ in throw TestSupportError("no") }
        #expect(try await fixture.makeLoader().dataResponse(for: reload).storeError?.code == .cacheFailed)
        let later = try await fixture.makeLoader().dataResponse(for: request)
        #expect(
            (later.source, later.metadata.bodyDigest) == (.network, BodyDigest.value(of: Data(try makePNG(width: 11))))
        )
    }

    @Test func `a variant of older bytes does not come back when the disk loses the bytes of a reload`() async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        self.scripted.script("/a", .body(try makePNG(width: 11)))
        self.scripted.script("/a", sequence: [.body(try makePNG(width: 10))])
        let bytes = ImageRequest(url: self.scripted.url("/a"), options: .waitForStore)
        var thumbnail = bytes
        thumbnail.thumbnail = .stretch(width: 6, height: 4)
        thumbnail.caching.variants = .all
        _ = try await fixture.makeLoader().image(for: thumbnail)
        var reload = bytes
        reload.cachePolicy = .reload
        let loader = fixture.makeLoader()
        let body = try await loader.dataResponse(for: reload).metadata.bodyDigest
        #expect(try await loader.cache.remove(bytes.sourceKey, from: .disk))
        #expect(try await fixture.makeLoader().response(for: thumbnail).metadata.bodyDigest == body)
    }

    @Test func `a reload that all callers leave while it stores replaces the older bytes all the same`() async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        let headers: HeaderFields = ["Cache-Control": "max-age=600"]
        self.scripted.script("/a", .body(try makePNG(width: 11), headers: headers))
        self.scripted.script("/a", sequence: [.body(try makePNG(width: 10), headers: headers)])
        // Each policy stores the bytes of a request with header fields under its own name.
        let request = ImageRequest(
            url: self.scripted.url("/a"),
            headers: ["Accept-Language": "de"],
            options: .waitForStore,
            cachePolicy: .honorFreshness
        )
        _ = try await fixture.makeLoader().data(for: request)
        let (isStoring, hasLeft) = (Gate(), Gate())
        var reload = request
        reload.cachePolicy = .reload
        reload.caching.originalSerializer = Named("slow") { data, _ in
            await isStoring.open()
            await hasLeft.wait()
            return data
        }
        let observer = StoreErrorObserver()
        let loader = fixture.makeLoader {
            $0.observers = [observer]
            $0.cachePolicy = .neverRevalidate
        }
        let call = Task { [reload] in try await loader.data(for: reload) }
        await isStoring.wait()
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        await hasLeft.open()
        await loader.shutdown()
        #expect(observer.errors.isEmpty)
        let later = try await fixture.makeLoader().data(for: request)
        #expect(later == Data(try makePNG(width: 11)))
    }

    @Test func `the file of a variant is served only if it was made of the bytes on disk`() async throws {
        let fixture = try LoaderFixture(origin: self.scripted)
        self.scripted.script("/a", .body(try makePNG(width: 11)))
        self.scripted.script("/a", sequence: [.body(try makePNG(width: 10))])
        let url = self.scripted.url("/a")
        let thumbnail = ImageRequest(
            source: .init(url: url),
            rendering: .init(thumbnail: .stretch(width: 6, height: 4)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        _ = try await fixture.makeLoader().image(for: thumbnail)
        let loader = fixture.makeLoader()
        #expect(try await loader.cachedFile(for: thumbnail) != nil)
        _ = try await loader.data(for: ImageRequest(url: url, options: .waitForStore, cachePolicy: .reload))
        #expect(try await loader.cachedFile(for: thumbnail) == nil)
    }

    @Test(arguments: 0..<6) func `after a reload no load gets an older image, from no tier and in no form`(
        seed: UInt64
    ) async throws {
        let report = try await OrderStorm(seed: seed).run { $0 > 400 }
        #expect(report.violationCount == 0, "\(report.violations)")
        #expect(report.outcomes["reload", default: 0] > 20)
    }
}
