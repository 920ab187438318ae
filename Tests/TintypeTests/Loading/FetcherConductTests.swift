// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Fetchers, coders and encoders of programs that break the rules or do something unexpected.
@Suite(.waiting, .timeLimit(.minutes(5))) struct FetcherConductTests {
    let fixture: LoaderFixture
    let scripted = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
    }

    @Test(arguments: [false, true])
    func `a fetcher that is slow to hear of urgency holds up no caller`(
        isCancelled: Bool
    )
        async throws
    {
        let (body, heard) = (Gate(), Gate())
        let image = Data(try makePNG())
        let (hearing, asked) = (Box(false), Box(false))
        let fetcher = ClosureFetcher(
            respond: { request, _ in
                asked.value = true
                await body.wait()
                return DownloadResponse(body: image, url: request.url)
            },
            hear: {
                hearing.value = true
                await heard.wait()
            }
        )
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        func request(_ priority: DownloadPriority) -> ImageRequest {
            var request = ImageRequest(url: self.scripted.url("/a"))
            request.priority = priority
            return request
        }
        let (lowRequest, highRequest) = (request(.low), request(.high))
        let low = Task { try await loader.image(for: lowRequest) }
        await until { asked.value == true }
        let ended = Box(false)
        let high = Task {
            defer { ended.value = true }
            return try await loader.image(for: highRequest)
        }
        await until { hearing.value == true || ended.value == true }
        if isCancelled { high.cancel() } else { await body.open() }
        await until { ended.value == true }
        #expect(ended.value == true)
        await heard.open()
        await body.open()
        _ = try await low.value
        _ = await high.result
    }

    @Test func `a fetcher that keeps its responses keeps no memory from others`() async throws {
        let downloader = DownloadActor(
            configuration: {
                var configuration = DownloadActor.Configuration()
                configuration.bodyMemory = 500
                return configuration
            }()
        )
        let kept = Box<[DownloadResponse]>([])
        let fetcher = ClosureFetcher(respond: { request, observer in
            let response = try await downloader.response(for: request, observer: observer)
            kept.value = (kept.value ?? []) + [response]
            return response
        })
        let image = try makePNG() + [UInt8](repeating: 0, count: 1_000)
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        for index in 0..<3 {
            let url = URL(filePath: try self.fixture.directory.write(image, to: "\(index).png"))
            #expect(try await loader.image(for: url).width == 8)
        }
        #expect(await downloader.counters.bodyBytes == 0)
    }

    @Test func `a caller that nothing cancelled is told of no cancellation`() async throws {
        let fetcher = ClosureFetcher(respond: { _, _ in throw CancellationError() })
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        let url = self.scripted.url("/a")
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: url) }
        #expect(error?.code == .refused)
    }

    @Test func `a fetcher that cancels its own task cancels no caller`() async throws {
        let fetcher = ClosureFetcher(respond: { request, _ in
            withUnsafeCurrentTask { $0?.cancel() }
            return DownloadResponse(body: Data(try makePNG()), url: request.url)
        })
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        let url = self.scripted.url("/a")
        let error = await #expect(throws: LoadError.self) { try await loader.image(for: url) }
        #expect(error?.code == .refused)
    }

    /// The points at which the program's code runs while a loader loads and encodes an image.
    enum Place: CaseIterable {
        case shouldDownload, shouldStore, shouldRememberFailure, modifyRequest, modifyResponse, originalSerializer
        case variantEncoder, decode, encode
    }

    @Test(arguments: Place.allCases, [false, true])
    func `what gives up by itself, or cancels the task that it runs in, cancels no caller`(
        place: Place,
        throwsError: Bool
    ) async throws {
        @Sendable func giveUp() throws {
            if throwsError { throw CancellationError() }
            withUnsafeCurrentTask { $0?.cancel() }
        }
        // For the functions that cannot throw.
        @Sendable func giveUpSilently() { withUnsafeCurrentTask { $0?.cancel() } }
        let log = ActivityTests.Log()
        let loader = self.fixture.makeLoader { configuration in
            configuration.observers = [log]
            configuration.coders = CoderRegistry(coders: [
                InterruptedCoder(
                    decodes: { if place == .decode { try giveUp() } },
                    encodes: { if place == .encode { try giveUp() } }
                )
            ])
            configuration.shouldDownload = { _ in
                if place == .shouldDownload { giveUpSilently() }
                return true
            }
            configuration.shouldStore = { _, _ in
                if place == .shouldStore { giveUpSilently() }
                return true
            }
            configuration.shouldRememberFailure = { _, _ in
                if place == .shouldRememberFailure { giveUpSilently() }
                return true
            }
            configuration.hooks.modifyRequest = { download, _ in
                if place == .modifyRequest { try giveUp() }
                return download
            }
            configuration.hooks.modifyResponse = { response, _ in
                if place == .modifyResponse { try giveUp() }
                return response
            }
            configuration.originalSerializer = { body, _ in
                if place == .originalSerializer { try giveUp() }
                return body
            }
            configuration.variantEncoder = { _, _ in
                if place == .variantEncoder { try giveUp() }
                return nil
            }
        }
        let isFailure = place == .shouldRememberFailure
        self.scripted.script("/a", isFailure ? .body([1], status: 404) : .body(try makePNG()))
        let request = ImageRequest(
            source: .init(url: self.scripted.url("/a")),
            rendering: .init(thumbnail: .fit(width: 4, height: 4)),
            caching: .init(variants: .all),
            options: .waitForStore
        )
        let loads: [() async throws -> Void] = [
            { _ = try await loader.encoded(request, as: .png) }, { _ = try await loader.image(for: request) },
            { _ = try await loader.data(for: request) },
        ]
        for load in loads {
            do {
                try await load()
                #expect(!isFailure)
            } catch {
                #expect((error as? LoadError)?.code == (isFailure ? .badStatus : .refused))
            }
        }
        for activity in log.activities {
            if case .cancelled = activity.kind { Issue.record("\(activity.product) is told to be cancelled") }
        }
    }

    @Test func `a hook that does not hear of its cancellation holds up no later load`() async throws {
        let (gate, asked) = (Gate(), Box(0))
        self.scripted.script("/a", .body(try makePNG()))
        let loader = self.fixture.makeLoader {
            $0.shouldStore = { _, _ in
                asked.value = (asked.value ?? 0) + 1
                if asked.value == 1 { await gate.wait() }
                return true
            }
        }
        let url = self.scripted.url("/a")
        let first = Task { try await loader.image(for: url) }
        await until { asked.value == 1 }
        first.cancel()
        _ = await first.result
        #expect(try await loader.image(for: url).width == 8)
        await gate.open()
    }

    @Test func `a fetch that does not hear of its cancellation holds up no later load, and changes nothing`()
        async throws
    {
        let gate = Gate()
        let (count, ended) = (Box(0), Box(0))
        let fetcher = ClosureFetcher(respond: { request, _ in
            let number = count.value ?? 0
            count.value = number + 1
            if number == 0 { await gate.wait() }
            defer { ended.value = (ended.value ?? 0) + 1 }
            return DownloadResponse(body: Data(try makePNG(width: 10 + number)), url: request.url)
        })
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        let request = ImageRequest(url: self.scripted.url("/a"), options: [.waitForStore])
        let first = Task { try await loader.image(for: request) }
        await until { count.value == 1 }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(try await loader.image(for: request).width == 11)
        await gate.open()
        await until { ended.value == 2 }
        // The shutdown waits for the fetch that ignored its cancellation.
        await loader.shutdown()
        #expect(try await loader.image(for: request).width == 11)
        #expect(try await self.fixture.makeLoader().data(for: request) == Data(makePNG(width: 11)))
    }

    @Test(arguments: [-1e300, 1e300, -Double.infinity, .infinity, .nan].map(\.bitPattern))
    func `times that are none end no process`(bits: UInt64) async throws {
        await #expect(processExitsWith: .success) { [bits] in
            let date = Date(timeIntervalSinceReferenceDate: Double(bitPattern: bits))
            let image = Data(try makePNG())
            let fetcher = ClosureFetcher(respond: { request, _ in
                let isConditional = request.headers["If-None-Match"] != nil
                return DownloadResponse(
                    body: isConditional ? Data() : image,
                    url: request.url,
                    status: isConditional ? 304 : 200,
                    headers: ["ETag": "\"a\"", "Cache-Control": "max-age=600"],
                    requestTime: date,
                    responseTime: date
                )
            })
            let fixture = try LoaderFixture()
            let loader = fixture.makeLoader { $0.fetcher = fetcher }
            let url = try #require(URL(string: "https://origin.example/a"))
            for policy in [
                CachePolicy.neverRevalidate, .neverRevalidate, .honorFreshness, .revalidate, .revalidate,
            ] {
                let request = ImageRequest(url: url, options: [.waitForStore], cachePolicy: policy)
                _ = try await loader.dataResponse(for: request)
                _ = try await loader.image(for: request)
                _ = try await loader.image(for: ImageRequest(url: url, cachePolicy: policy))
            }
        }
    }

    @Test(arguments: ["flower.jpg", "flower.webp", "kodak-3.png"])
    func `a body may be a part of other data`(name: String) async throws {
        let whole = try Fixtures.data(name)
        let body = (Data([1, 2, 3, 4, 5, 6, 7]) + whole + Data([8, 9]))[7..<7 + whole.count]
        #expect(body.startIndex == 7)
        let fetcher = ClosureFetcher(respond: { request, observer in
            for start in stride(from: body.startIndex, to: body.endIndex, by: 20_000) {
                let piece = body[start..<min(start + 20_000, body.endIndex)]
                observer.didReceive?(piece)
                observer.didProgress(TransferProgress(receivedBytes: .min, expectedBytes: 0))
                observer.didProgress(TransferProgress(receivedBytes: .max, expectedBytes: -1))
            }
            return DownloadResponse(body: body, url: request.url)
        })
        let loader = self.fixture.makeLoader {
            $0.fetcher = fetcher
            $0.coders = CoderRegistry()
        }
        let url = self.scripted.url("/a")
        var last: Image?
        for try await event in loader.events(
            for: ImageRequest(url: url, options: [.previews, .waitForStore])
        ) {
            if case .finished(let response) = event { last = response.image }
        }
        let reference = try await self.fixture.makeLoader { $0.fetcher = nil }.image(
            for: Fixtures.url(name)
        )
        #expect(last?.width == reference.width)
        let thumbnail = ImageRequest(
            source: .init(url: url),
            rendering: .init(thumbnail: .fit(width: 50, height: 50)),
            caching: .init(originals: .disk)
        )
        #expect(try await loader.image(for: thumbnail).width > 0)
        #expect(
            try await loader.frames(for: ImageRequest(url: url)).frame(at: 0).width == reference.width
        )
        #expect(try await loader.data(for: ImageRequest(url: url)) == whole)
    }

    /// A fetcher that reports wrong preview bytes and impossible progress, also after its end.
    @Test(arguments: 0..<6) func `what a fetcher shows never reaches the image`(
        seed: UInt64
    )
        async throws
    {
        let body = Data(try PreviewTests.progressiveJPEG())
        let wrong = [
            Data(try makePNG()), Data("no image".utf8), Data(), Data(body.reversed()),
            Data(body.dropFirst(50)),
        ]
        let kept = Box<[FetchObserver]>([])
        let fetcher = ClosureFetcher(respond: { request, observer in
            kept.value = (kept.value ?? []) + [observer]
            var random = SeededGenerator(seed: seed)
            for _ in 0..<10 {
                observer.didReceive?(wrong.randomElement(using: &random) ?? Data())
                observer.didProgress(
                    TransferProgress(
                        receivedBytes: .random(in: .min ... .max, using: &random),
                        expectedBytes: 5
                    )
                )
            }
            return DownloadResponse(body: body, url: request.url)
        })
        let loader = self.fixture.makeLoader {
            $0.fetcher = fetcher
            $0.coders = CoderRegistry()
        }
        for index in 0..<5 {
            var end: ImageResponse?
            let request = ImageRequest(url: self.scripted.url("/\(index)"), options: [.previews])
            for try await event in loader.events(for: request) {
                if case .finished(let response) = event { end = response }
            }
            #expect(end?.image.width == 320)
            for observer in kept.value ?? [] {
                observer.didReceive?(body)
                observer.didProgress(TransferProgress(receivedBytes: 1, expectedBytes: 1))
            }
        }
        await until { await loader.downloads.counters.bodyBytes == 0 }
        await loader.shutdown()
    }

    // MARK: Loads within loads

    private func makeSmallLoader(
        _ change: (inout LoaderActor.Configuration) -> Void = { _ in }
    ) -> LoaderActor {
        self.fixture.makeLoader { configuration in
            configuration.downloads.bodyMemory = 1
            change(&configuration)
        }
    }

    @Test func `an encoder of variants may load an image where memory is short`() async throws {
        self.scripted.script("/a", .body(try makePNG()))
        self.scripted.script("/mark", .body(try makePNG(width: 3)))
        let mark = ImageRequest(url: self.scripted.url("/mark"), options: [.waitForStore])
        _ = try await self.fixture.makeLoader().data(for: mark)
        let box = Box<LoaderActor>()
        let loader = self.makeSmallLoader { configuration in
            configuration.variantEncoder = { image, _ in
                _ = try await box.value?.image(for: mark)
                return Data(try makePNG(width: image.width, height: image.height))
            }
        }
        box.value = loader
        let request = ImageRequest(
            source: .init(url: self.scripted.url("/a")),
            rendering: .init(thumbnail: .fit(width: 4, height: 4)),
            caching: .init(variants: CacheUse()),
            options: [.waitForStore]
        )
        #expect(try await loader.image(for: request).width == 4)
        box.value = nil
    }

    @Test func `a fetcher may load an image where memory is short`() async throws {
        self.scripted.script(
            "/base",
            .body(try makePNG(width: 9), headers: ["Cache-Control": "max-age=600"])
        )
        let base = ImageRequest(url: self.scripted.url("/base"), options: [.waitForStore])
        let box = Box<LoaderActor>()
        let derive = Named<any ImageFetching>(
            "derive",
            ClosureFetcher(respond: { request, _ in
                let width = try await box.value?.image(for: base).width ?? 0
                return DownloadResponse(body: Data(try makePNG(width: width * 2)), url: request.url)
            })
        )
        let request = ImageRequest(
            source: .init(url: self.scripted.url("/derived"), fetcher: derive),
            options: [.waitForStore]
        )
        for _ in 0..<2 {
            let loader = self.makeSmallLoader { $0.cachePolicy = .honorFreshness }
            box.value = loader
            #expect(try await loader.image(for: request).width == 18)
        }
        box.value = nil
    }
}

/// A PNG coder that is interrupted while it works.
private struct InterruptedCoder: ImageCoder {
    private struct Opened: EncodedImage {
        let base: any EncodedImage
        let decodes: @Sendable () throws -> Void

        var header: ImageHeader { self.base.header }

        func decode(options: DecodeOptions) throws -> DecodedImage {
            try self.decodes()
            return try self.base.decode(options: options)
        }
    }

    let decodes: @Sendable () throws -> Void
    let encodes: @Sendable () throws -> Void

    var decodableFormats: Set<ImageFormat> { [.png] }
    var encodableFormats: Set<ImageFormat> { [.png] }

    func open(_ data: Data, limits: DecodingLimits) throws -> any EncodedImage {
        Opened(base: try PNGCoder().open(data, limits: limits), decodes: self.decodes)
    }

    func encode(_ image: Image, as format: ImageFormat, options: EncodeOptions) throws -> Data {
        try self.encodes()
        return try PNGCoder().encode(image, as: format, options: options)
    }
}
