// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import TintypeHTTP

/// The address of an S3 store, and the way in which its URLs name buckets.
package struct S3Endpoint: Sendable {
    /// The place of the bucket in a URL.
    package enum Style: Sendable {
        /// The first part of the path, as compatible stores expect it.
        case path
        /// The first label of the host, as Amazon expects it.
        case host
    }

    private let scheme: String
    /// The host, and the port if the endpoint names one.
    private let authority: String
    /// The path before the bucket or the key, without a slash at its end.
    private let path: String
    private let style: Style
    /// The exception in the network policy for an endpoint that the settings name, which may be in an inner network.
    private let exception: NetworkPolicy.Exception?

    /// Creates Amazon's endpoint of a region, such as `eu-central-1`.
    ///
    /// - Throws: ``DownloadError`` if the text is no name of a region.
    package init(region: String, style: Style = .host) throws(DownloadError) {
        let isName =
            !region.isEmpty
            && region.utf8.allSatisfy { byte in
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
                    || byte == UInt8(ascii: "-")
            }
        guard isName else { throw .notAnEndpoint("The region \(region) is not a name such as eu-central-1") }
        self.scheme = "https"
        self.authority = "s3.\(region).amazonaws.com" + (region.hasPrefix("cn-") ? ".cn" : "")
        self.path = ""
        self.style = style
        self.exception = nil
    }

    /// Creates the endpoint of a compatible store, such as `http://minio.internal:9000`.
    ///
    /// The network policy lets S3 requests reach it wherever it is.
    ///
    /// - Throws: ``DownloadError`` if the URL is not one of an endpoint.
    package init(url: URL, style: Style = .path) throws(DownloadError) {
        let text = url.absoluteString
        let parts = text.split(separator: "://", maxSplits: 1)
        guard parts.count == 2, let target = ConnectionTarget(text), !target.hasUserInformation,
            let scheme = NetworkPolicy.Scheme(rawValue: parts[0].lowercased()), [.http, .https].contains(scheme),
            FieldText.isPlain(text), !text.utf8.contains(where: { "?#\\ ".utf8.contains($0) })
        else { throw .notAnEndpoint("The S3 endpoint is not a URL of HTTP without a user, a query and a fragment") }
        let rest = parts[1]
        let authority = rest.prefix { $0 != "/" }
        let isAddress = HostRule(domain: target.host) == nil
        guard !isAddress || style == .path else {
            throw .notAnEndpoint("The S3 endpoint has an address as its host, before which no bucket can stand")
        }
        guard let host = HostRule(domain: target.host) ?? HostRule(exactly: target.host) else {
            throw .notAnEndpoint("The host of the S3 endpoint is neither a name nor an address")
        }
        self.scheme = scheme.rawValue
        self.authority = authority.lowercased()
        self.path = String(rest[authority.endIndex...].reversed().drop { $0 == "/" }.reversed())
        self.style = style
        self.exception = NetworkPolicy.Exception(schemes: [scheme], host: host, ports: [target.port])
    }

    /// Returns the URL of an object, in the spelling that is signed.
    func url(of object: S3Object) throws(DownloadError) -> URL {
        let version = object.version.map { (name: "versionId", value: $0) }
        return try self.url(bucket: object.bucket, key: object.key, query: [version].compactMap(\.self))
    }

    /// Returns the URL of an object, or of the bucket if the key is empty, in the spelling that is signed.
    ///
    /// The names in `query` must be plain and sorted.
    package func url(
        bucket: String,
        key: [UInt8],
        query: [(name: String, value: [UInt8])] = []
    ) throws(DownloadError) -> URL {
        let base =
            if self.style == .host, self.canBeLabels(bucket) {
                "\(self.scheme)://\(bucket).\(self.authority)\(self.path)"
            } else {
                "\(self.scheme)://\(self.authority)\(self.path)/\(bucket)"
            }
        let key = PercentEncoding.encode(key, allowing: "/")
        let items = query.map { "\($0.name)=\(PercentEncoding.encode($0.value))" }
        let text = "\(base)/\(key)" + (items.isEmpty ? "" : "?" + items.joined(separator: "&"))
        guard let url = URL(string: text) else {
            throw .notAnEndpoint("The S3 endpoint and the bucket \(bucket) make no URL")
        }
        return url
    }

    /// Returns the policy of a request to the endpoint; `nil` for the downloader's.
    package func admitted(by policy: NetworkPolicy?) -> NetworkPolicy? {
        guard let exception else { return policy }
        var policy = policy ?? .publicInternet
        policy.exceptions.append(exception)
        return policy
    }

    /// Whether a bucket can stand before the host: a certificate for `*.host` covers one label only.
    private func canBeLabels(_ bucket: String) -> Bool {
        let isLabel =
            bucket.utf8.count <= 63 && !bucket.contains("_") && !bucket.hasPrefix("-") && !bucket.hasSuffix("-")
        let hasOneLabel = self.scheme == "http" || !bucket.contains(".")
        return isLabel && hasOneLabel && bucket == bucket.lowercased()
    }
}

extension DownloadError {
    fileprivate static func notAnEndpoint(_ fault: String) -> DownloadError {
        DownloadError(code: .invalidURL, message: "\(fault); check the settings of S3.")
    }
}
