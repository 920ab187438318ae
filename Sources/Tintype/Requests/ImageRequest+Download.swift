import FoundationEssentials
import TintypeCaching
import TintypeDownloading
import TintypeHTTP

// The parts of a request for its fetcher, and for the metadata in the cache.

extension ImageRequest {
    /// Returns the download of the request's bytes.
    ///
    /// Fields that are `nil` take their values from the downloader's
    /// configuration.
    func download(headers: HeaderFields, maximumBodySize: Int) -> DownloadRequest {
        var download = DownloadRequest(
            url: self.url,
            headers: headers,
            timeout: self.timeouts.idle,
            maximumBodySize: maximumBodySize,
            credentials: self.credentials,
            allowsInvalidCertificates: self.options.contains(.allowInvalidCertificates)
        )
        download.totalTimeout = self.timeouts.total
        download.cookies = self.cookies
        download.networkPolicy = self.networkPolicy
        download.retryPolicy = self.retryPolicy
        return download
    }

    /// The text for HTTP's rules instead of the field `Authorization`; never sent.
    var authorization: String? { self.headers["Authorization"] ?? self.credentials?.identity }

    /// The fields of the request for HTTP's rules.
    var judgedHeaders: HeaderFields {
        guard self.headers["Authorization"] == nil, let authorization else { return self.headers }
        return self.headers + [HeaderField(name: "Authorization", value: authorization)]
    }

    /// Metadata with what the request wants noted of it: when it ends, at the earliest end that is known, and what else is
    /// to be kept.
    func noting(_ metadata: EntryMetadata, at now: Date) -> EntryMetadata {
        guard self.lifetime != nil || !self.extra.isEmpty else { return metadata }
        var metadata = metadata
        if let lifetime {
            let end = now.addingTimeInterval(lifetime / .seconds(1))
            metadata.expiry = metadata.expiry.map { min($0, end) } ?? end
        }
        metadata.extra.merge(self.extra) { _, new in new }
        return metadata
    }
}
