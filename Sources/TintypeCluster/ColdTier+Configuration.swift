// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
public import Tintype
import TintypeHTTP

extension ColdTier {
    /// The settings of a cold tier.
    public struct Configuration: Sendable {
        /// The bucket.
        public let bucket: String
        /// The start of the keys of all objects, without slashes at its ends; empty for the whole bucket.
        public let prefix: String
        /// The revision in the names of derived entries, or an empty text.
        public let revision: String
        /// The name of the tier in statistics and activities.
        public var name = "s3"
        /// The most bytes of an entry; the tier does not accept larger ones.
        ///
        /// The default is 64 MiB.
        public var maximumEntrySize = 64 << 20
        /// The longest time for a look-up, a store or a removal, after which the cache continues without it.
        ///
        /// The default is five seconds, because an object store takes tens of milliseconds, and longer for large
        /// entries.
        public var timeBudget = Duration.seconds(5)
        /// The longest time from the request of a look-up to the head of its answer, with the time to connect.
        ///
        /// The default is one second; with zero, only ``timeBudget`` applies. A load makes several look-ups, and continues
        /// without the store after each that fails. After three failures in a row, the store is not called for a while.
        public var firstByteTimeout = Duration.seconds(1)
        /// The rules for retries of stores and removals; by default up to three attempts, also after 503 (SlowDown),
        /// unless the store demands a pause of over two seconds.
        ///
        /// The tier does not repeat look-ups, because loads wait for them.
        public var retryPolicy = RetryPolicy(maximumRetryAfter: .seconds(2))

        /// Receives the failures of the store that a person must know of, and must be quick; by default does nothing.
        public var report: @Sendable (Cluster.Configuration.Event) -> Void = { _ in }
        /// The clock of the circuits.
        var now: @Sendable () -> ContinuousClock.Instant = { .now }
        /// The most keys in one page of a list.
        var pageSize = 1_000
        let endpoint: S3Endpoint
        let credentials: Credentials?

        /// Creates a configuration from a URL such as `s3://bucket/prefix?region=eu-central-1`.
        ///
        /// The query has these items:
        ///
        /// * `region`: the region of the bucket. It is required for Amazon; for other stores, the default is
        ///   `us-east-1`.
        /// * `endpoint`: the URL of a store other than Amazon's, such as `http://minio:9000`.
        /// * `style`: `host` if the bucket is the first label of the host, as at Amazon, or `path` if it is the first
        ///   part of the path, as at other stores.
        ///
        /// ```swift
        /// let configuration = try ColdTier.Configuration(
        ///     url: "s3://thumbnails/cache?endpoint=http://minio:9000",
        ///     accessKey: "tintype",
        ///     secretKey: token
        /// )
        /// ```
        ///
        /// - Parameters:
        ///   - url: The URL of the bucket and the prefix. It must not contain keys.
        ///   - accessKey: The public name of the key that signs requests; `nil` sends them unsigned.
        ///   - secretKey: The secret of the key.
        ///   - sessionToken: The token of a temporary key.
        ///   - revision: A text in the names of derived entries, such as the version of the program. Give machines that
        ///     make different thumbnails different revisions, so that they do not read the thumbnails of each other.
        /// - Throws: `CacheError` that says what to change.
        public init(
            url: String,
            accessKey: String? = nil,
            secretKey: String? = nil,
            sessionToken: String? = nil,
            revision: String = ""
        ) throws(CacheError) {
            let location = try StoreLocation(url)
            self.bucket = location.bucket
            self.prefix = location.prefix
            self.endpoint = try location.endpoint()
            self.credentials = try Self.credentials(accessKey, secretKey, sessionToken, region: location.region)
            guard revision.isEmpty || ObjectNames.isRevision(revision) else {
                throw .badSetting(
                    "The revision of the cold store must have at most 64 letters, digits, dots, hyphens and underscores."
                )
            }
            self.revision = revision
        }

        private static func credentials(
            _ accessKey: String?,
            _ secretKey: String?,
            _ sessionToken: String?,
            region: String
        ) throws(CacheError) -> Credentials? {
            guard let accessKey, let secretKey else {
                guard accessKey == nil, secretKey == nil, sessionToken == nil else {
                    throw .badSetting(
                        "The access key of the cold store and its secret belong together; give both or neither."
                    )
                }
                return nil
            }
            let key = AWSSigningKey(
                accessKey: accessKey,
                secretKey: secretKey,
                sessionToken: sessionToken,
                region: region,
                service: "s3"
            )
            guard key.isSendable, !secretKey.isEmpty else {
                throw .badSetting(
                    "The access key of the cold store, its secret or its region is empty or has a character that cannot be signed; copy them again."
                )
            }
            return .awsSignature(key)
        }
    }
}

/// The parts of the URL of a cold store.
struct StoreLocation: Sendable {
    let bucket: String
    let prefix: String
    private let items: [String: String]

    /// - Throws: ``CacheError`` that says how to write the URL, and does not repeat it: it may contain a secret.
    init(_ url: String) throws(CacheError) {
        let scheme = "s3://"
        guard url.prefix(scheme.count).lowercased() == scheme else { throw .badLocation("does not begin with s3://") }
        let text = url.utf8.dropFirst(scheme.utf8.count)
        guard FieldText.isPlain(text), !text.contains(UInt8(ascii: "#")) else {
            throw .badLocation("has a # or a control character")
        }
        let path = text.prefix { $0 != UInt8(ascii: "?") }
        let bucket = path.prefix { $0 != UInt8(ascii: "/") }
        self.bucket = String(decoding: bucket, as: UTF8.self)
        guard S3Object.isBucket(self.bucket) else {
            throw .badLocation("has no valid name of a bucket behind s3:// (keys are parameters of their own)")
        }
        let slash = UInt8(ascii: "/")
        let rest = PercentEncoding.decode(path[bucket.endIndex...])
        let prefix = Array(rest.drop { $0 == slash }.reversed().drop { $0 == slash }.reversed())
        guard FieldText.isPlain(prefix), !S3Object.hasDots(prefix), prefix.count <= 512,
            let prefix = String(validating: prefix, as: UTF8.self)
        else {
            throw .badLocation("has a prefix with a control character, with . or .. as a part, or over 512 bytes")
        }
        self.prefix = prefix
        self.items = try Self.items(text[path.endIndex...].dropFirst())
    }

    private static func items(_ query: Substring.UTF8View) throws(CacheError) -> [String: String] {
        var items: [String: String] = [:]
        for item in query.split(separator: UInt8(ascii: "&")) {
            let name = item.prefix { $0 != UInt8(ascii: "=") }
            let value = String(decoding: PercentEncoding.decode(item[name.endIndex...].dropFirst()), as: UTF8.self)
            guard let name = String(name), ["region", "endpoint", "style"].contains(name), !value.isEmpty,
                items.updateValue(value, forKey: name) == nil
            else { throw .badLocation("has an item in its query that is unknown, empty or repeated") }
        }
        return items
    }

    /// The region, which signatures contain.
    var region: String { self.items["region"] ?? "us-east-1" }

    /// Returns the endpoint of the store.
    func endpoint() throws(CacheError) -> S3Endpoint {
        let style: S3Endpoint.Style? =
            switch self.items["style"] {
            case "host": .host
            case "path": .path
            case nil: nil
            default: throw .badLocation("has a style other than host and path")
            }
        do throws(DownloadError) {
            guard let text = self.items["endpoint"] else {
                guard let region = self.items["region"] else { throw .withoutRegion }
                return try S3Endpoint(region: region, style: style ?? .host)
            }
            guard let url = URL(string: text) else { throw .noEndpoint }
            return try S3Endpoint(url: url, style: style ?? .path)
        } catch {
            throw .badSetting(error.message)
        }
    }
}

extension CacheError {
    fileprivate static func badSetting(_ message: String) -> CacheError {
        CacheError(code: .invalidURL, message: message)
    }

    fileprivate static func badLocation(_ fault: String) -> CacheError {
        .badSetting(
            "The URL of the cold store \(fault); write it as s3://bucket/prefix?region=eu-central-1, with endpoint=http://host:9000 in its query for a store other than Amazon's."
        )
    }
}

extension DownloadError {
    fileprivate static let withoutRegion = DownloadError(
        code: .invalidURL,
        message: "The URL of the cold store has no region and no endpoint; add ?region= or ?endpoint= to it."
    )
    fileprivate static let noEndpoint = DownloadError(
        code: .invalidURL,
        message: "The endpoint of the cold store is not a URL; write it as endpoint=http://host:9000."
    )
}
