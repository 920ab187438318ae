// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
package import Tintype
import TintypeConcurrency

/// Fetches the files below one folder, with URLs such as `local:///holidays/beach.jpg`.
///
/// It follows no links and serves only ordinary files: everything else is missing, with the status 404. A file or
/// folder without permission is unreadable. The response has an `ETag` and a `Last-Modified`, and answers conditional
/// requests.
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
        let failure = Locked<CInt>(0)
        let file = FileSource(url: url, name: path.description) { [folder] flags in
            let descriptor = folder.open(path, flags: flags)
            let code = errno
            guard descriptor < 0 else { return descriptor }
            failure.withLock { $0 = code }
            errno = Self.failures.contains(code) ? code : ENOENT
            return descriptor
        }
        do {
            var response = try await self.downloads.read(file, for: request, observer)
            // A check of the file costs little, so a change shows within a second.
            response.headers.set("max-age=1, must-revalidate", for: "Cache-Control")
            return response
        } catch let error as DownloadError where error.code == .fileNotFound {
            throw DownloadError.missing(url, Self.advice(on: failure.withLock { $0 }, path) ?? error.message)
        }
    }

    /// The failures that do not mean that the file is missing: permissions, and shortages of the system.
    private static let failures = [EACCES, EPERM, EMFILE, ENFILE, ENOMEM, EIO, EAGAIN, EINTR]

    /// Returns the message for a path that exists but is not served, or `nil`.
    private static func advice(on code: CInt, _ path: LocalPath) -> String? {
        switch code {
        case ELOOP: "The path \(path) has a symbolic link. The server does not follow links; use the path of the file."
        case EISDIR: "The path \(path) is a folder; use the path of a file."
        case ENXIO: "The path \(path) is not an ordinary file; only ordinary files are served."
        default: nil
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
