// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype
import TintypeFrameworkNames

// The README's samples, line by line, as the server of a user compiles them.

func report(_ request: ImageRequest, _ loader: LoaderActor) async throws {
    for try await event in loader.events(for: request) {
        switch event {
        case .progress(let progress): print(progress.receivedBytes, progress.expectedBytes ?? -1)
        case .preview(let image): print(image.width)
        case .cached(let response), .finished(let response): print(response.image.width, response.source)
        }
    }
}

func answer(_ request: ImageRequest, _ loader: LoaderActor) async throws -> (Int, Data) {
    do {
        let thumbnail = try await loader.encoded(request, as: .jpeg())
        return (200, thumbnail.data)
    } catch let error as LoadError {
        print(error.code, error.message)
        return (error.httpStatus, Data(error.publicMessage.utf8))
    }
}

func makeLoader() -> LoaderActor {
    var configuration = LoaderActor.Configuration()
    configuration.downloads.networkPolicy = .publicInternet
    configuration.disk?.directory = URL(filePath: "/var/cache/images")
    configuration.limits.maximumPixels = 40_000_000
    let loader = LoaderActor(configuration: configuration)
    return loader
}

/// Copies header fields into a Tintype request and out of its response, without ambiguous names.
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
