import Foundation
import FrameworkNames
import Tintype
import TintypeTargets

// The README's samples, line by line, as the server of a user compiles them.

// swift-format-ignore: NeverForceUnwrap
func first() async throws -> (ImageRequest, LoaderActor) {
    let url = URL(string: "https://example.com/photo.jpg")!
    let other = URL(string: "https://example.com/other.jpg")!

    let loader = LoaderActor()
    let image = try await loader.image(for: url)

    let request = ImageRequest(url: url, thumbnail: .fit(width: 400, height: 400))
    let thumbnail = try await loader.image(for: request)
    let jpeg = try await loader.encode(thumbnail, as: .jpeg)
    let reply = try await loader.encoded(request, as: .webp(quality: 75))

    for try await event in loader.events(for: ImageRequest(url: other)) {
        switch event {
        case .progress(let progress): print(progress.receivedBytes, progress.expectedBytes ?? -1)
        case .finished(let response): print(response.image.width, response.source)
        case .preview, .cached: break
        }
    }
    _ = (image, jpeg, reply)
    return (request, loader)
}

func leave(_ url: URL, _ loader: LoaderActor) async {
    let task = Task { try await loader.image(for: url) }
    task.cancel()
    await loader.shutdown()
}

func tell(_ url: URL, _ loader: LoaderActor) async throws {
    do {
        _ = try await loader.image(for: url)
    } catch let error as LoadError {
        switch error.code {
        case .badStatus: print("the origin answered", error.status ?? 0)
        case .notAnImage, .unsupportedFormat, .corrupt, .truncated: print("not an image that Tintype reads")
        case .addressNotAllowed, .portNotAllowed, .hostNotAllowed, .schemeNotAllowed: print("refused by the policy")
        default: print(error.message)
        }
    }
}

func show(_ request: ImageRequest, _ loader: LoaderActor, in target: Frame) {
    loader.load(request, into: target)
}

/// The least that a target has to have.
actor Frame: ImageTarget {
    nonisolated let imageLoads = TargetLoads()
    private var shown: Image?

    func setPlaceholder(_ placeholder: Image?, for key: TargetKey) { self.shown = placeholder }
    func setPicture(_ picture: TargetPicture, for key: TargetKey) { self.shown = picture.image }
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
    configuration.disk?.directory = URL(filePath: "/var/cache/pictures")
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
    request.originalCaching = .disk
    request.variantCaching = .all
    configuration.cache = CacheGroup([CacheActor(disk: archive), CacheActor(disk: recent)])
    request.cacheKey = "photo-17"
    request.credentials = .bearer(token)
    request.networkPolicy = .publicInternet
    request.timeouts = LoadTimeouts(idle: .seconds(5), total: .seconds(20))
    request.lifetime = .seconds(3_600)

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

/// Fields go from a framework's request to ours and back without a name in dispute.
func handle(_ request: ImageRequest, with loader: LoaderActor) async throws -> [(String, String)] {
    var request = request
    var headers: HeaderFields = ["Accept-Language": "de"]
    headers.append("no-cache", for: "Cache-Control")
    headers["X-Request-ID"] = nil
    request.headers = headers + [HeaderField(name: "Accept", value: "image/webp")]
    let response = try await loader.dataResponse(for: request)
    let record: ResponseRecord? = response.metadata.response
    let freshness: Freshness? = record?.freshness
    _ = (freshness?.isFresh(at: Date()), record?.values(for: "Vary"), record?.fields.first?.isNamed("ETag"))
    var download = DownloadRequest(url: request.url)
    download.acceptableStatusCodes = StatusCodes.success.union(304)
    let jar = CookieJar()
    jar.insert(CookieJar.Cookie(name: "a", value: "b", domain: "example.org"))
    download.cookies = .jar(jar)
    let version: ProtocolVersion? = try await loader.downloads.response(for: download).metrics.httpVersion
    return response.headers.map { ($0.name, $0.value) } + [("X-Version", version?.description ?? "")]
}
