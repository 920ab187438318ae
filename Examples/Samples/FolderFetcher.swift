// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import Tintype

/// A fetcher for a scheme of its own: `folder:/cat.jpg` is a file in one folder, and never one outside it.
public struct FolderFetcher: ImageFetching {
    private let folder: URL

    public init(_ folder: URL) {
        self.folder = folder
    }

    public func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        let name = request.url.lastPathComponent
        guard !name.hasPrefix("."), !name.contains("/"),
            let body = try? Data(contentsOf: self.folder.appending(path: name))
        else {
            // A status makes the loader treat the answer as HTTP does: a 404 is remembered for a while.
            return DownloadResponse(body: Data(), url: request.url, status: 404)
        }
        return DownloadResponse(body: body, url: request.url, status: 200)
    }
}
