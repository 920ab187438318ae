// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

@Suite(.waiting, .timeLimit(.minutes(5))) struct PreviewTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
    }

    /// Returns a loader with the library's own coders, because the fixture's counting coders make no previews.
    private func makeLoader() -> LoaderActor {
        self.fixture.makeLoader { $0.coders = CoderRegistry() }
    }

    static func progressiveJPEG(colorProfile: Data? = nil) throws -> [UInt8] {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 320, height: 240)
        var options = EncodeOptions(isProgressive: true)
        options.metadata.colorProfile = colorProfile
        return Array(try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: options))
    }

    /// Returns a response that sends most of the body, waits for the gate, and then sends the rest.
    private static func halves(_ body: [UInt8], _ gate: Gate) -> ScriptedResponse {
        let middle = body.count * 3 / 4
        return .pieces([Array(body[..<middle]), Array(body[middle...])], movedBy: [gate])
    }

    @Test func `an image is shown before its last byte`() async throws {
        let gate = Gate()
        self.origin.script("/a", Self.halves(try Self.progressiveJPEG(), gate))
        let request = ImageRequest(url: self.origin.url("/a"), options: [.previews])
        var previews: [Image] = []
        var end: ImageResponse?
        for try await event in self.makeLoader().events(for: request) {
            switch event {
            case .progress, .cached: break
            case .preview(let image):
                previews.append(image)
                await gate.open()
            case .finished(let response): end = response
            }
        }
        #expect(!previews.isEmpty)
        #expect(previews.allSatisfy { ($0.width, $0.height) == (320, 240) })
        #expect(end?.source == .network)
    }

    /// Returns the previews of a body whose end arrives after the first preview.
    private func previews(
        of body: [UInt8],
        by loader: LoaderActor? = nil,
        asking change: (inout ImageRequest) -> Void
    ) async throws -> [Image] {
        let gate = Gate()
        // Every call needs its own path, because earlier images are cached.
        let path = "/\(UUID())"
        self.origin.script(path, Self.halves(body, gate))
        var request = ImageRequest(url: self.origin.url(path), options: [.previews])
        change(&request)
        var previews: [Image] = []
        for try await event in (loader ?? self.makeLoader()).events(for: request) {
            guard case .preview(let image) = event else { continue }
            previews.append(image)
            await gate.open()
        }
        return previews
    }

    @Test func `previews have the size of the thumbnail`() async throws {
        let body = try Self.progressiveJPEG()
        let previews = try await self.previews(of: body) { $0.thumbnail = .fit(width: 60, height: 60) }
        #expect(!previews.isEmpty)
        #expect(previews.allSatisfy { ($0.width, $0.height) == (60, 45) })
        let limited = try await self.previews(of: body) { $0.rendering.scaleDownLimit = 160 * 120 * 4 }
        #expect(!limited.isEmpty)
        #expect(limited.allSatisfy { $0.width * $0.height <= 160 * 120 })
    }

    @Test func `previews are made by the coder of the request`() async throws {
        let loader = self.fixture.makeLoader { $0.coders = CoderRegistry(coders: []) }
        let previews = try await self.previews(of: try Self.progressiveJPEG(), by: loader) {
            $0.rendering.coder = Named("jpeg", JPEGCoder())
        }
        #expect(!previews.isEmpty)
    }

    @Test(.enabled(if: Fixtures.corpus != nil)) func `previews keep the profile where the request does`() async throws {
        let path = try #require(Fixtures.corpus).appending(path: "icc-profiles/DisplayP3-v4.icc")
        let body = try Self.progressiveJPEG(colorProfile: try Data(contentsOf: path))
        let kept = try await self.previews(of: body) { $0.options.insert(.keepColorProfile) }
        #expect(!kept.isEmpty)
        #expect(kept.allSatisfy { $0.colorProfile != nil })
        let converted = try await self.previews(of: body) { _ in }
        #expect(!converted.isEmpty)
        #expect(converted.allSatisfy { $0.colorProfile == nil })
    }

    @Test func `previews are marked, and the image is not`() async throws {
        let previews = try await self.previews(of: try Self.progressiveJPEG()) {
            $0.thumbnail = .fit(width: 60, height: 60)
        }
        #expect(!previews.isEmpty && previews.allSatisfy(\.isPreview))
        self.origin.script("/a", .body(try Self.progressiveJPEG()))
        let request = ImageRequest(url: self.origin.url("/a"), options: [.previews])
        #expect(try await !self.makeLoader().image(for: request).isPreview)
    }

    // MARK: Kept previews

    /// Loads until the first preview, and then breaks off.
    ///
    /// The rest of the body never arrives.
    private func breakOff(_ request: ImageRequest, on loader: LoaderActor) async throws {
        let body = try Self.progressiveJPEG()
        self.origin.script(request.url.path, Self.halves(body, Gate()))
        for try await event in loader.events(for: request) {
            if case .preview = event { break }
        }
        await until { await loader.loadCount == 0 }
    }

    @Test func `a preview that is kept is shown to the next load first, which goes on`() async throws {
        let loader = self.makeLoader()
        var request = ImageRequest(url: self.origin.url("/a"), options: [.previews, .keepPreviews])
        try await self.breakOff(request, on: loader)
        // A load does not take the preview for the image, and the disk does not have it.
        var cached = request
        cached.cachePolicy = .cacheOnly
        let error = await #expect(throws: LoadError.self) { try await loader.response(for: cached) }
        #expect(error?.code == .notInCache)
        #expect(loader.cache.memory.image(for: request.key) == nil)
        await loader.waitForPendingStores()
        #expect(self.fixture.cacheFiles().isEmpty)

        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: try Self.progressiveJPEG()))
        request.options = .previews
        var previews = 0
        for try await event in loader.events(for: request) {
            switch event {
            case .preview(let image):
                // The origin has sent nothing yet.
                if previews == 0 { #expect(image.isPreview && image.width == 320) }
                previews += 1
                await gate.open()
            case .finished(let response):
                #expect(!response.image.isPreview && response.source == .network)
            case .progress, .cached: break
            }
        }
        #expect(previews > 0)
        // The image has replaced the kept preview.
        #expect(loader.cache.memory.entry(for: RequestKeys.preview(of: request.key)) == nil)
        #expect(loader.cache.memory.image(for: request.key)?.isPreview == false)
    }

    @Test(arguments: [LoadOptions.previews, [.previews, .keepPreviews]])
    func `a preview is kept only where that is asked for`(options: LoadOptions) async throws {
        let loader = self.makeLoader()
        let request = ImageRequest(url: self.origin.url("/a"), options: options)
        try await self.breakOff(request, on: loader)
        let kept = loader.cache.memory.entry(for: RequestKeys.preview(of: request.key))
        #expect((kept?.image.isPreview == true) == options.contains(.keepPreviews))
    }

    @Test(arguments: [nil, Resize.stretch(width: 8, height: 6)])
    func `a kept preview of an older image goes when a reload brings another`(
        thumbnail: Resize?
    ) async throws {
        let loader = self.makeLoader()
        let kept = ImageRequest(url: self.origin.url("/a"), options: [.previews, .keepPreviews])
        try await self.breakOff(kept, on: loader)
        let key = RequestKeys.preview(of: kept.key)
        #expect(loader.cache.memory.entry(for: key) != nil)
        self.origin.script("/a", .body(try makePNG()))
        let reload = ImageRequest(url: kept.url, thumbnail: thumbnail, cachePolicy: .reload)
        if thumbnail == nil {
            _ = try await loader.data(for: reload)
        } else {
            _ = try await loader.image(for: reload)
        }
        #expect(loader.cache.memory.entry(for: key) == nil)
    }

    @Test func `a kept preview is shown to no load that wants none, or nothing of the memory`() async throws {
        let loader = self.makeLoader()
        let kept = ImageRequest(url: self.origin.url("/a"), options: [.previews, .keepPreviews])
        try await self.breakOff(kept, on: loader)
        self.origin.script("/a", .body(try makePNG()))
        var plain = kept
        plain.options = []
        var reloading = kept
        reloading.cachePolicy = .reload
        for request in [plain, reloading] {
            for try await event in loader.events(for: request) {
                if case .preview(let image) = event { #expect(image.width != 320) }
            }
        }
    }

    @Test func `no preview comes unless it is asked for`() async throws {
        self.origin.script("/a", .body(try Self.progressiveJPEG()))
        for try await event in self.makeLoader().events(for: ImageRequest(url: self.origin.url("/a"))) {
            if case .preview = event { Issue.record("no preview was asked for") }
        }
    }

    @Test func `damaged bytes are an error of the load and not of the preview`() async throws {
        let body = try Self.progressiveJPEG()
        self.origin.script("/a", .body(body[..<(body.count / 2)]))
        let request = ImageRequest(url: self.origin.url("/a"), options: [.previews])
        let error = await #expect(throws: LoadError.self) {
            for try await _ in self.makeLoader().events(for: request) {}
        }
        #expect(error?.code == .truncated, "\(String(describing: error))")
    }
}
