// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeHTTP
import TintypeImgproxy

/// The fetchers of sources that are not HTTP, and the rules for all sources.
struct SourceFetchers: Sendable {
    private let allowed: AllowedSources
    private let local: Named<any ImageFetching>?
    private let store: Named<any ImageFetching>?
    private let uploads: Named<any ImageFetching>?

    /// - Throws: ``SettingError`` if the local folder or the object store cannot be used.
    init(
        _ sources: ImageServer.Configuration.Sources,
        allowed: AllowedSources,
        uploads: UploadStore?,
        downloads: DownloadActor
    ) throws(SettingError) {
        self.allowed = allowed
        do {
            self.local = try sources.localRoot.map { root in
                Named("local", try LocalFolderFetcher(root: root.path(percentEncoded: false), downloads: downloads))
            }
            self.store = try sources.s3.map { store in
                Named("s3", try Self.fetcher(of: store, downloads))
            }
        } catch {
            throw SettingError("\(error)")
        }
        self.uploads = uploads.map { Named("upload", UploadFetcher(uploads: $0)) }
    }

    /// Returns the request for the source of an address.
    ///
    /// - Throws: `DownloadError` if the source is not allowed.
    func request(for address: ImageAddress) throws(DownloadError) -> ImageRequest {
        guard let url = URL(string: Self.text(of: address)) else {
            throw DownloadError(code: .invalidURL, message: "The source is not a URL; check how it is encoded.")
        }
        if address.scheme != .upload { try self.allowed.check(url) }
        var request = ImageRequest(url: url)
        request.source.fetcher =
            switch address.scheme {
            case .http, .https: nil
            case .local: self.local
            case .s3: self.store
            case .upload: self.uploads
            }
        return request
    }

    /// Returns the source as a URL, and encodes the key of a file or an object.
    private static func text(of address: ImageAddress) -> String {
        guard !address.scheme.isWeb else { return address.source }
        let key = address.source.utf8.dropFirst(address.scheme.rawValue.utf8.count + "://".utf8.count)
        let version = address.objectVersion.map { "?" + PercentEncoding.encode($0.utf8) }
        return "\(address.scheme.rawValue)://\(PercentEncoding.encode(key, allowing: "/"))\(version ?? "")"
    }

    private static func fetcher(
        of store: ImageServer.Configuration.Sources.S3,
        _ downloads: DownloadActor
    ) throws -> S3Fetcher {
        let key = store.accessKey.map { access in
            AWSSigningKey(
                accessKey: access,
                secretKey: store.secretKey ?? "",
                sessionToken: store.sessionToken,
                region: store.region,
                service: "s3"
            )
        }
        let endpoint = try store.endpoint.map { try S3Endpoint(url: $0) } ?? S3Endpoint(region: store.region)
        return S3Fetcher(endpoint: endpoint, key: key, fetcher: downloads)
    }
}

/// Fetches the files that the page has uploaded.
struct UploadFetcher: ImageFetching {
    let uploads: UploadStore

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let body = self.uploads[request.url.lastPathComponent]
        guard let body else {
            throw DownloadError(
                code: .fileNotFound,
                message: "The file is not on the server any more; send it again.",
                url: request.url,
                status: 404
            )
        }
        return DownloadResponse(body: body, url: request.url, headers: ["Cache-Control": "no-store"])
    }
}
