// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype
import TintypeFrameworkNames
import TintypeTargets

// The samples of Docs/guide.md, line by line.

func load(_ url: URL) async throws -> (ImageRequest, LoaderActor) {
    let loader = LoaderActor()
    let image = try await loader.image(for: url)

    let request = ImageRequest(url: url, thumbnail: .fit(width: 400, height: 400))
    let thumbnail = try await loader.image(for: request)
    let jpeg = try await loader.encode(thumbnail, as: .jpeg)
    let reply = try await loader.encoded(request, as: .webp(quality: 75))
    _ = (image, jpeg, reply)
    return (request, loader)
}

func leave(_ url: URL, _ loader: LoaderActor) async {
    let task = Task { try await loader.image(for: url) }
    task.cancel()
    await loader.shutdown()
}

func animated(_ request: ImageRequest, _ loader: LoaderActor, show: (Image) -> Void) async throws {
    let frames = try await loader.frames(for: request)
    for index in 0..<frames.frameCount { show(try await frames.frame(at: index)) }
    for try await frame in AnimationPlayer(frames) { show(frame.image) }
}

func withMetadata(_ image: Image, of request: ImageRequest, _ loader: LoaderActor) async throws -> Data {
    let metadata = try await loader.metadata(for: request)
    var options = EncodeOptions()
    options.metadata = .init(carryingOver: metadata)
    let file = try await loader.encode(image, as: .webp, options: options)
    return file
}

func card(_ url: URL, _ loader: LoaderActor) async throws -> Image {
    var request = ImageRequest(url: url, transforms: [.crop(.aspectRatio(16 / 9)), .resize(.width(800))])
    request.transforms.transforms.append(.roundCorners(RoundCorners(radius: 24)))
    let card = try await loader.image(for: request)
    return card
}

func upright(_ request: ImageRequest, _ loader: LoaderActor) async throws -> Data {
    let transform = JPEGTransform(turnsUpright: true, coding: .progressive, metadata: .carriedOver)
    let upright = try await loader.transform(try await loader.data(for: request), by: transform).data
    return upright
}

func configured() -> LoaderActor.Configuration {
    var configuration = LoaderActor.Configuration()
    configuration.memory.costLimit = 256 << 20
    configuration.disk?.directory = URL(filePath: "/var/cache/images")
    configuration.disk?.sizeLimit = 20 << 30
    configuration.limits.maximumPixels = 40_000_000
    configuration.cachePolicy = .honorFreshness
    configuration.downloads.networkPolicy = .publicInternet
    configuration.downloads.retryPolicy = RetryPolicy()
    let loader = LoaderActor(configuration: configuration)
    _ = loader
    return configuration
}

func more(
    _ request: ImageRequest,
    _ requests: [ImageRequest],
    _ loader: LoaderActor,
    token: String,
    archive: DiskCache,
    recent: DiskCache,
    mirror: URL
) async throws {
    var request = request
    var configuration = LoaderActor.Configuration()
    request.cachePolicy = .revalidate
    request.caching.originals = .disk
    request.caching.variants = .all
    configuration.cache = CacheActor(tiers: [recent, archive])
    request.cacheKey = "photo-17"
    request.source.credentials = .bearer(token)
    request.transport.networkPolicy = .publicInternet
    request.transport.timeouts = LoadTimeouts(idle: .seconds(5), total: .seconds(20))
    request.caching.lifetime = .seconds(3_600)

    for await progress in Prefetcher(loader: loader).prefetch(requests) {
        print(progress.completedCount, progress.failedCount, progress.totalCount)
    }
    let watch = Task {
        for await event in loader.downloads.events() { print(event) }
    }

    let data = try await loader.data(for: request)
    try await loader.store(data, for: request)
    try await loader.remove(request)
    let file = try await loader.cachedFile(for: request)
    let upload = try await loader.image(from: data)

    request.alternatives = [ImageRequest(url: mirror)]
    _ = (file, upload, watch)
}

func show(_ request: ImageRequest, _ loader: LoaderActor, in target: Frame) {
    loader.load(request, into: target)
}

struct StubFetcher: ImageFetching {
    let bodies: [URL: Data]

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let body = bodies[request.url]
        return DownloadResponse(body: body ?? Data(), url: request.url, status: body == nil ? 404 : 200)
    }
}

func makeStubbedLoader(_ url: URL, _ png: Data) -> LoaderActor {
    var configuration = LoaderActor.Configuration()
    configuration.disk = nil
    configuration.fetcher = StubFetcher(bodies: [url: png])
    let loader = LoaderActor(configuration: configuration)
    return loader
}

/// A target with only the required members.
actor Frame: ImageTarget {
    nonisolated let imageLoads = TargetLoads()
    private var shown: Image?

    func setPlaceholder(_ placeholder: Image?, for key: TargetKey) { self.shown = placeholder }
    func setImage(_ image: TargetImage, for key: TargetKey) { self.shown = image.image }
}
