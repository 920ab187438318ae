// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeHTTP

// The parts of a request for its fetcher, and for the metadata in the cache.

extension ImageRequest {
    /// Returns the download of the request's bytes.
    ///
    /// Properties that are `nil` take their values from the downloader's configuration.
    func download(headers: HeaderFields, maximumBodySize: Int) -> DownloadRequest {
        var download = DownloadRequest(
            url: self.url,
            headers: headers,
            timeout: self.transport.timeouts.idle,
            maximumBodySize: maximumBodySize,
            credentials: self.source.credentials,
            allowsInvalidCertificates: self.options.contains(.allowInvalidCertificates)
        )
        download.totalTimeout = self.transport.timeouts.total
        download.cookies = self.source.cookies
        download.networkPolicy = self.transport.networkPolicy
        download.retryPolicy = self.transport.retryPolicy
        return download
    }

    /// The text for HTTP's rules instead of the field `Authorization`; never sent.
    var authorization: String? { self.headers["Authorization"] ?? self.source.credentials?.identity }

    /// The fields of the request for HTTP's rules.
    var judgedHeaders: HeaderFields {
        guard self.headers["Authorization"] == nil, let authorization else { return self.headers }
        return self.headers + [HeaderField(name: "Authorization", value: authorization)]
    }

    /// Returns metadata with the lifetime and the extra values of the request; the earlier end counts.
    func noting(_ metadata: EntryMetadata, at now: Date, isInMemory: Bool = false) -> EntryMetadata {
        let caching = self.caching
        let memoryLifetime = isInMemory ? caching.memoryLifetime : nil
        guard caching.lifetime != nil || memoryLifetime != nil || !caching.extra.isEmpty else { return metadata }
        var metadata = metadata
        func end(after lifetime: Duration?) {
            guard let end = lifetime.map({ now.addingTimeInterval($0 / .seconds(1)) }) else { return }
            metadata.expiry = metadata.expiry.map { min($0, end) } ?? end
        }
        end(after: caching.lifetime)
        end(after: memoryLifetime)
        metadata.extra.merge(caching.extra) { _, new in new }
        return metadata
    }
}
