// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
package import Tintype

/// Fetches the files below one folder, with URLs such as `local:///holidays/beach.jpg`.
///
/// It follows no links and serves only ordinary files. A file that is missing, or that must not be read, has the status
/// 404. The response has an `ETag` and a `Last-Modified`, and answers conditional requests.
package struct LocalFolderFetcher: ImageFetching {
    private let folder: LocalFolder
    private let downloads: DownloadActor

    /// Opens the folder.
    ///
    /// - Parameters:
    ///   - root: The path of the folder, which may be a link.
    ///   - downloads: The downloader whose thread reads the files, and whose limits apply.
    /// - Throws: ``DownloadError`` if the folder cannot be opened.
    package init(root: String, downloads: DownloadActor) throws(DownloadError) {
        self.folder = try LocalFolder(path: root)
        self.downloads = downloads
    }

    package func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let url = request.url
        guard let path = LocalPath(url) else { throw DownloadError.missing(url) }
        let file = FileSource(url: url, name: path.description) { [folder] flags in folder.open(path, flags: flags) }
        do {
            var response = try await self.downloads.read(file, for: request, observer)
            // A look at the file costs little, so a change shows within a second.
            response.headers.set("max-age=1, must-revalidate", for: "Cache-Control")
            return response
        } catch let error as DownloadError where error.code == .fileNotFound {
            throw DownloadError.missing(url, error.message)
        }
    }
}

extension DownloadError {
    /// The error of a file that the folder does not have, as if a server had answered with 404.
    fileprivate static func missing(
        _ url: URL,
        _ message: String = "The path of the local URL names no file below the folder; check the path."
    ) -> DownloadError {
        DownloadError(code: .fileNotFound, message: message, url: url, status: 404)
    }
}
