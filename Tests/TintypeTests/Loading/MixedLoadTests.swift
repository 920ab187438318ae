// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Origins, policies, fields and callers in any mix.
@Suite(.waiting, .timeLimit(.minutes(5))) struct MixedLoadTests {
    /// The image of one path for one user and language at one revision.
    private struct Content: Hashable, Sendable {
        var path: Int
        var user: Int
        var language: Int
        var revision: Int

        var body: [UInt8] {
            (try? makePNG(
                width: 10 + self.path * 12 + self.user * 4 + self.language,
                height: 1 + self.revision
            ))
                ?? []
        }
    }

    private static let contents: [UInt64: Content] = {
        var contents: [UInt64: Content] = [:]
        for path in 0..<3 {
            for user in 0..<3 {
                for language in 0..<3 {
                    for revision in 0..<40 {
                        let content = Content(path: path, user: user, language: language, revision: revision)
                        contents[BodyDigest.value(of: Data(content.body))] = content
                    }
                }
            }
        }
        return contents
    }()

    @Test(arguments: 0..<40) func `each caller gets what it asked for, whatever happens`(
        seed: UInt64
    )
        async throws
    {
        var random = SeededGenerator(seed: seed)
        // Computed before the loads begin, because a cancelled task could not make the images.
        let contents = Self.contents
        let clock = TestClock()
        let revision = Box(0)
        let varies = Box(seed.isMultiple(of: 2))
        let rolls = Box(seed)
        let fetcher = ClosureFetcher(respond: { request, observer in
            var random = SeededGenerator(seed: (rolls.value ?? 0) &* 0x9E37_79B9_7F4A_7C15)
            rolls.value = (rolls.value ?? 0) &+ 1
            let start = revision.value ?? 0
            let isVarying = varies.value ?? false
            for _ in 0..<Int.random(in: 0..<30, using: &random) { await Task.yield() }
            try Task.checkCancellation()
            let path = Int(request.url.lastPathComponent) ?? 0
            let user = Int(request.headers["X-User"] ?? "") ?? 0
            let language = isVarying ? Int(request.headers["Accept-Language"] ?? "") ?? 0 : 0
            let content = Content(path: path, user: user, language: language, revision: start)
            let tag = "\"\(path)-\(user)-\(language)-\(start)\""
            var headers: HeaderFields = [:]
            let control = [
                "max-age=60", "max-age=0, stale-if-error=600", "no-store",
                "max-age=5, stale-while-revalidate=600",
                "no-cache", "private, max-age=60", "max-age=60, immutable", "",
            ].randomElement(using: &random)
            if let control, !control.isEmpty { headers["Cache-Control"] = control }
            if isVarying { headers["Vary"] = "Accept-Language" }
            switch Int.random(in: 0..<12, using: &random) {
            case 0: throw DownloadError(code: .connectionLost, message: "Lost.", url: request.url)
            case 1: return DownloadResponse(body: Data("busy".utf8), url: request.url, status: 503)
            case 2: return DownloadResponse(body: Data("<html>".utf8), url: request.url, headers: headers)
            case 3 where request.acceptableStatusCodes?.contains(304) ?? false:
                // Confirms another entity tag.
                return DownloadResponse(
                    body: Data(),
                    url: request.url,
                    status: 304,
                    headers: ["ETag": "\"other\""]
                )
            case 4:
                // Sends no entity tag.
                break
            default: headers["ETag"] = tag
            }
            if request.headers["If-None-Match"] == tag {
                return DownloadResponse(body: Data(), url: request.url, status: 304, headers: headers)
            }
            let body = Data(content.body)
            observer.didReceive?(body)
            return DownloadResponse(body: body, url: request.url, headers: headers)
        })
        let fixture = try LoaderFixture()
        let cache = CacheActor(
            memory: MemoryCache(
                .init(costLimit: seed.isMultiple(of: 3) ? 2_000 : 1 << 20, now: { clock.now })
            ),
            disk: DiskCache(
                {
                    var configuration = DiskCache.Configuration(directory: fixture.directory.url(of: "cache"))
                    configuration.now = { clock.now }
                    if seed.isMultiple(of: 5) { configuration.sizeLimit = 3_000 }
                    return configuration
                }()
            )
        )
        let loaders = (0..<2).map { index in
            fixture.makeLoader { configuration in
                configuration.cache = cache
                configuration.fetcher = fetcher
                configuration.cachePolicy = index == 0 ? .honorFreshness : .neverRevalidate
                configuration.now = { clock.now }
                configuration.downloads.bodyMemory = seed.isMultiple(of: 4) ? 1 : 1 << 20
                configuration.decodingMemory = seed.isMultiple(of: 7) ? 1 : 1 << 20
            }
        }
        let failures = Box<[String]>([])
        var tasks: [Task<Void, any Error>] = []
        for index in 0..<250 {
            if Int.random(in: 0..<12, using: &random) == 0 {
                revision.value = min(39, (revision.value ?? 0) + 1)
            }
            if Int.random(in: 0..<40, using: &random) == 0 { varies.value = !(varies.value ?? false) }
            if Int.random(in: 0..<10, using: &random) == 0 {
                clock.advance(by: .random(in: -5...20, using: &random))
            }
            let (path, user) = (
                Int.random(in: 0..<3, using: &random), Int.random(in: 0..<3, using: &random)
            )
            let language = Int.random(in: 0..<3, using: &random)
            var headers: HeaderFields = [:]
            if user > 0 { headers["X-User"] = "\(user)" }
            if language > 0 { headers["Accept-Language"] = "\(language)" }
            let url = try #require(URL(string: "https://origin.example/\(path)"))
            var request = ImageRequest(url: url, headers: headers)
            request.cachePolicy =
                [nil, nil, .reload, .revalidate, .honorFreshness, .cacheOnly].randomElement(using: &random)
                ?? nil
            if Bool.random(using: &random) {
                request.thumbnail = .stretch(width: 3 + index % 3, height: 3)
            }
            if Bool.random(using: &random) { request.caching.variants = CacheUse() }
            for option in [LoadOptions.waitForStore, .keepData, .previews]
            where Int.random(in: 0..<4, using: &random) == 0 { request.options.insert(option) }
            request.priority = DownloadPriority.allCases.randomElement(using: &random) ?? .normal
            let kind = Int.random(in: 0..<3, using: &random)
            let loader = loaders[Int.random(in: 0..<2, using: &random)]
            tasks.append(
                Task { [request] in
                    func check(_ digest: UInt64?, _ data: Data?) {
                        let content = digest.flatMap { contents[$0] }
                        let isRight =
                            content.map {
                                $0.path == path && $0.user == user && ($0.language == language || $0.language == 0)
                            } ?? false
                        let isSame = data.map { BodyDigest.value(of: $0) == digest } ?? true
                        if kind == 1, !isRight, data == Data("<html>".utf8) { return }
                        if !isRight || !isSame {
                            let asked = "\(path) \(user) \(language) \(String(describing: request.cachePolicy))"
                            failures.value =
                                (failures.value ?? []) + [
                                    "asked \(asked) got \(String(describing: content)) \(isSame)"
                                ]
                        }
                    }
                    do {
                        switch kind {
                        case 0:
                            let response = try await loader.response(for: request)
                            check(response.metadata.bodyDigest, response.data)
                        case 1:
                            let response = try await loader.dataResponse(for: request)
                            check(response.metadata.bodyDigest, response.data)
                        default:
                            for try await event in loader.events(for: request) {
                                switch event {
                                case .cached(let response), .finished(let response):
                                    check(response.metadata.bodyDigest, response.data)
                                case .progress, .preview: break
                                }
                            }
                        }
                    } catch let error as LoadError {
                        let known: [LoadError.Code] = [
                            .connectionLost, .badStatus, .notInCache, .notAnImage, .unsupportedFormat,
                        ]
                        if !known.contains(error.code) {
                            failures.value = (failures.value ?? []) + ["\(error)"]
                        }
                    }
                }
            )
            if Int.random(in: 0..<6, using: &random) == 0 {
                tasks.randomElement(using: &random)?.cancel()
            }
            if Int.random(in: 0..<3, using: &random) == 0 { await Task.yield() }
        }
        for task in tasks {
            if case .failure(let error) = await task.result, !(error is CancellationError) {
                failures.value = (failures.value ?? []) + ["\(error)"]
            }
        }
        #expect(failures.value == [])
        for loader in loaders {
            await loader.waitForRevalidations()
            await until { await loader.loadCount == 0 }
            await until { await loader.bytesWaiterCount == 0 }
            await until { await loader.downloads.counters.bodyBytes == 0 }
            await loader.shutdown()
            #expect(await loader.decodeWaiterCount == 0)
        }
    }

    // MARK: Ends

    /// Shutdowns at random moments reach every caller and leave nothing behind.
    @Test(arguments: 0..<40) func `a shutdown at any moment ends everything`(
        seed: UInt64
    )
        async throws
    {
        var random = SeededGenerator(seed: seed)
        let scripted = ScriptedOrigin()
        let fixture = try LoaderFixture(origin: scripted)
        let body = try makePNG(width: 60, height: 60)
        for index in 0..<10 { scripted.script("/\(index)", .body(body)) }
        scripted.script("/silent", .silence)
        let loader = fixture.makeLoader {
            $0.downloads.bodyMemory = seed.isMultiple(of: 2) ? 1 : 1_000_000
            $0.decodingMemory = seed.isMultiple(of: 3) ? 1 : 1_000_000
        }
        var tasks: [Task<Void, any Error>] = []
        for _ in 0..<60 {
            let number = Int.random(in: 0..<12, using: &random)
            var request = ImageRequest(url: scripted.url(number > 9 ? "/silent" : "/\(number)"))
            if Bool.random(using: &random) { request.thumbnail = .stretch(width: number + 1, height: 3) }
            if Bool.random(using: &random) { request.caching.variants = CacheUse() }
            if Bool.random(using: &random) { request.options.insert(.waitForStore) }
            if Bool.random(using: &random) { request.options.insert(.keepData) }
            request.cachePolicy =
                [nil, .reload, .revalidate, .honorFreshness].randomElement(using: &random) ?? nil
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
        await loader.shutdown()
        await other
        for task in tasks {
            if case .failure(let error) = await task.result {
                #expect(error is CancellationError || (error as? LoadError)?.code == .shutDown)
            }
        }
        #expect(await loader.loadCount == 0)
        await until { await loader.downloads.counters.bodyBytes == 0 }
    }

    @Test(arguments: [0, -1, 1, Int.min, Int.max]) func `limits that are none end no process`(
        limit: Int
    ) async throws {
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
            let request = ImageRequest(
                source: .init(url: URL(filePath: path)),
                // A request whose own limit is below 1 is refused before any work.
                rendering: .init(scaleDownLimit: max(1, limit)),
                options: [.previews]
            )
            _ = try? await loader.image(for: request)
            for try await _ in loader.events(for: request) {}
            _ = try? await loader.frames(for: request).frame(at: 0)
            _ = try? await loader.image(
                for: ImageRequest(url: URL(filePath: path), thumbnail: .fit(width: limit, height: limit))
            )
            await loader.shutdown()
        }
    }
}
