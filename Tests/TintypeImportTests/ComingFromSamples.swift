// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeFrameworkNames
import TintypePrometheus
import TintypeTargets

// The samples of Docs/coming-from.md, with stand-ins for the user's own types.

protocol Bucket: Sendable {
    func object(named name: String) async throws -> Data
}

func token(for url: URL) async throws -> String { "" }
func decrypt(_ body: Data) throws -> Data { body }
func show(_ image: Image) {}

func begin(url: URL) async throws -> Image {
    let loader = LoaderActor()
    let image = try await loader.image(for: url)
    return image
}

func thumbnail(url: URL, _ loader: LoaderActor) async throws {
    let request = ImageRequest(url: url, thumbnail: .fit(width: 400, height: 300))
    let response = try await loader.response(for: request)
    print(response.image.width, response.format ?? .jpeg, response.source, response.isAnimated)
}

actor Avatar: ImageTarget {
    nonisolated let imageLoads = TargetLoads()
    private var shown: Image?

    func setPlaceholder(_ placeholder: Image?, for key: TargetKey) { self.shown = placeholder }
    func setImage(_ image: TargetImage, for key: TargetKey) { self.shown = image.image }
}

func intoTarget(
    _ request: ImageRequest,
    _ loader: LoaderActor,
    avatar: Avatar,
    gray: Image,
    broken: Image
) {
    let options = TargetOptions(placeholder: gray, failureImage: broken)
    loader.load(request, into: avatar, options: options)
    loader.cancelLoad(of: avatar)
}

func prefetch(_ urls: [URL], _ loader: LoaderActor) async {
    let prefetcher = Prefetcher(loader: loader, destination: .disk, concurrency: 3)
    for await progress in prefetcher.prefetch(urls.map { ImageRequest(url: $0) }) {
        print(progress.completedCount, progress.failedCount, progress.totalCount)
    }
}

func progress(_ request: ImageRequest, _ loader: LoaderActor) async throws {
    var request = request
    request.options = [.previews]
    for try await event in loader.events(for: request) {
        switch event {
        case .progress(let progress): print(progress.receivedBytes, progress.expectedBytes ?? -1)
        case .preview(let image): show(image)
        case .cached(let response), .finished(let response): show(response.image)
        }
    }
}

func cancel(_ request: ImageRequest, _ loader: LoaderActor) async {
    let task = Task { try await loader.image(for: request) }
    task.cancel()
    await loader.cancelAll()
    await loader.shutdown()
}

func policies(_ request: ImageRequest, _ loader: LoaderActor) async throws {
    var request = request
    request.cachePolicy = .revalidate
    request.cachePolicy = .reload
    request.cachePolicy = .cacheOnly
    request.caching.originals = CacheUse(store: .memory)
    request.caching.variants = CacheUse(query: .all, store: .disk)

    do {
        show(try await loader.image(for: request))
    } catch let error as LoadError where error.code == .notInCache {
        print(error.message)
    }
}

func keys(_ request: ImageRequest) -> LoaderActor.Configuration {
    var request = request
    var configuration = LoaderActor.Configuration()
    request.cacheKey = "photo-17"
    configuration.keyFilter = { request in
        request.url.host() == "cdn.example.com" ? request.url.path() : nil
    }
    return configuration
}

func cached(_ data: Data, _ request: ImageRequest, _ loader: LoaderActor) async throws {
    try await loader.store(data, for: request)
    let isCached = await loader.contains(request)
    let tiers = await loader.tiers(holding: request)
    if let file = try await loader.cachedFile(for: request) { print(file.path, file.offset, file.byteCount) }
    try await loader.remove(request)
    try await loader.cache.removeAll(from: .disk)
    _ = (isCached, tiers)
}

func hooked(_ request: ImageRequest) {
    var request = request
    var hooks = LoadHooks()
    hooks.modifyRequest = { download, request in
        var download = download
        download.headers["X-Token"] = try await token(for: request.url)
        return download
    }
    hooks.decrypt = { body, response, request in try decrypt(body) }
    request.source.hooks = Named("token, key 7", hooks)
}

struct BucketFetcher: ImageFetching {
    let bucket: any Bucket

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let object = try await self.bucket.object(named: request.url.path())
        return DownloadResponse(body: object, url: request.url)
    }
}

func fetched(_ bucket: any Bucket, _ request: ImageRequest) -> LoaderActor {
    var request = request
    var configuration = LoaderActor.Configuration()
    configuration.fetcher = BucketFetcher(bucket: bucket)
    request.source.fetcher = Named("bucket", BucketFetcher(bucket: bucket))
    return LoaderActor(configuration: configuration)
}

func alternatives(_ request: ImageRequest, mirror: URL, gray: Image, _ loader: LoaderActor) async throws {
    var request = request
    request.alternatives = [ImageRequest(url: mirror)]
    request.fallback = gray
    let response = try await loader.response(for: request)
    print(response.alternative ?? 0, response.failure?.attempts.count ?? 0)
}

func play(_ request: ImageRequest, _ loader: LoaderActor) async throws {
    let frames = try await loader.frames(for: request)
    for try await frame in AnimationPlayer(frames, mode: .bounce, loopLimit: 2) {
        show(frame.image)
    }
}

func image(
    _ request: ImageRequest,
    ifNoneMatch tag: String?,
    with loader: LoaderActor
) async throws -> (status: Int, headers: HeaderFields, body: Data) {
    let response = try await loader.encoded(request, as: .webp(quality: 75))
    let seconds = max(0, Int((response.freshnessLifetime - response.age()) / .seconds(1)))
    let headers: HeaderFields = [
        "Content-Type": response.mediaType,
        "ETag": response.etag,
        "Cache-Control": "max-age=\(seconds)",
    ]
    return tag == response.etag ? (304, headers, Data()) : (200, headers, response.data)
}

func measured(_ request: ImageRequest, _ loader: LoaderActor) async throws {
    let metrics = try await loader.response(for: request).metrics
    print(metrics.total, metrics.transfer?.firstByte ?? .zero, metrics.decode, metrics.isJoined)
    print(await loader.statistics().prometheusText())
}
