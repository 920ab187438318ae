// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import Tintype
import TintypeConcurrency
import TintypeHTTP

/// A byte tier in a bucket of S3 or a compatible store: large, cheap and slow.
///
/// Make it the farthest tier. A look-up reaches it only if no nearer tier has the entry, and a hit fills the nearer
/// tiers.
///
/// ```swift
/// let store = try ColdTier.Configuration(url: "s3://thumbnails/cache?region=eu-central-1", accessKey: "AKIA", secretKey: token)
/// let cache = CacheActor(tiers: [DiskCache(), redis, ColdTier(store)], timeBudget: .seconds(5))
/// ```
///
/// Stores are write-behind: the cache runs them in the background, in the order of their calls, and no load waits for
/// them. Each ends after ``Configuration/timeBudget``, so choose one that is long enough to send the largest entry. In
/// five seconds, 64 MiB need 14 MB/s.
///
/// The tier never removes an entry because of its age, and has no limit of size. Give the bucket a lifecycle rule that
/// expires old objects.
///
/// The key needs the permissions `s3:GetObject`, `s3:PutObject`, `s3:DeleteObject` and `s3:ListBucket`. The last one
/// lists the entries of a family before their removal, and lets the store answer 404 for a missing object.
///
/// An object that is damaged, or that another program has put there, is a miss.
public final class ColdTier: ByteTier {
    private let configuration: Configuration
    private let names: ObjectNames
    private let downloads: DownloadActor
    /// Refuses requests to a store that does not answer, so that loads do not wait for it.
    private let circuits = Locked(Circuits())

    private enum Act {
        case lookup, store, removal
    }

    /// The circuits of look-ups, of stores and of removals.
    ///
    /// While look-ups are refused, all calls are. Failed stores and removals open their own circuit only: large stores may
    /// fail because of their size, and a store that is full still answers look-ups and removes entries.
    private struct Circuits {
        private var circuits: [Act: Circuit] = [:]
        private var lastRefusal: ContinuousClock.Instant?

        /// The shortest time between two reports of refused requests.
        private static let refusalPause = Duration.seconds(60)

        subscript(act: Act) -> Circuit {
            get { self.circuits[act] ?? Circuit() }
            set { self.circuits[act] = newValue }
        }

        mutating func admits(_ act: Act, at now: ContinuousClock.Instant) -> Bool {
            guard act == .lookup || !self[.lookup].isRefusing(at: now) else { return false }
            return self[act].admits(at: now)
        }

        /// Returns whether to report that the store has refused a request.
        mutating func mustReportRefusal(at now: ContinuousClock.Instant) -> Bool {
            if let lastRefusal, now - lastRefusal < Self.refusalPause { return false }
            self.lastRefusal = now
            return true
        }
    }

    /// Creates a tier, without a connection and without a thread.
    ///
    /// The first request starts a thread, which ends with the tier.
    ///
    /// ```swift
    /// let tier = ColdTier(try ColdTier.Configuration(url: "s3://thumbnails?endpoint=http://minio:9000"))
    /// ```
    public init(_ configuration: Configuration) {
        self.configuration = configuration
        self.names = ObjectNames(prefix: configuration.prefix, revision: configuration.revision)
        var downloads = DownloadActor.Configuration()
        downloads.retryPolicy = configuration.retryPolicy
        downloads.maximumConnectionsPerHost = 32
        // The store redirects requests for a bucket of another region, which a signature for this region cannot follow.
        downloads.maximumRedirects = 0
        // The cache applies the time budget. This limit only ends requests that nobody waits for.
        downloads.timeout = configuration.timeBudget * 2
        downloads.firstByteTimeout = configuration.timeBudget
        // A body that comes more slowly than this has stalled.
        downloads.minimumSpeed = .init(bytesPerSecond: 16 << 10, period: .seconds(1))
        downloads.acceptHeader = ""
        self.downloads = DownloadActor(configuration: downloads)
    }

    public var name: String { self.configuration.name }

    /// The time budget of the configuration.
    public var timeBudget: Duration? { self.configuration.timeBudget }

    /// Returns whether the tier stores an entry of this size: an original or a derived entry up to
    /// ``Configuration/maximumEntrySize``.
    public func accepts(_ key: CacheKey, byteCount: Int) -> Bool {
        byteCount <= self.configuration.maximumEntrySize
    }

    // MARK: Entries

    public func entry(for key: CacheKey) async throws -> ByteEntry? {
        try await self.calling("read an entry", .lookup) {
            var request = try self.request(.get, self.names.object(of: key))
            request.maximumBodySize = self.configuration.maximumEntrySize + Self.maximumHeadSize
            do {
                return ByteEntry(encoded: try await self.lookUp(request).body, for: key)
            } catch let error as DownloadError where error.status == 404 || Self.foreign.contains(error.code) {
                return nil
            }
        }
    }

    /// Reads only the start of the object, because an original may have megabytes.
    public func metadata(for key: CacheKey) async throws -> EntryMetadata? {
        let start = try await self.calling("read an entry", .lookup) { () -> DownloadResponse? in
            var request = try self.request(.get, self.names.object(of: key))
            request.headers = ["Range": "bytes=0-\(Self.startByteCount - 1)"]
            // The store may ignore the range.
            request.maximumBodySize = self.configuration.maximumEntrySize + Self.maximumHeadSize
            do {
                return try await self.lookUp(request)
            } catch let error as DownloadError
                where error.status == 404 || error.status == 416 || Self.foreign.contains(error.code)
            {
                return nil
            }
        }
        guard let start else { return nil }
        let total = start.headers["Content-Range"].flatMap { ContentRange($0) }?.total
        if let metadata = ByteEntry.metadata(start: start.body, of: total ?? start.body.count, for: key) {
            return metadata
        }
        // The key and the metadata may be longer than usual.
        return start.status == 200 || total == start.body.count ? nil : try await self.entry(for: key)?.metadata
    }

    public func store(_ data: Data, metadata: EntryMetadata, for key: CacheKey) async throws {
        let limit = self.configuration.maximumEntrySize
        guard data.count <= limit else {
            throw CacheError(
                code: .entryTooLarge,
                message:
                    "An entry of \(data.count) bytes is over the limit of \(limit) bytes of the cold store; raise its maximumEntrySize."
            )
        }
        let object = ByteEntry(data: data, metadata: metadata).encoded(for: key)
        var request = try self.request(.put(object), self.names.object(of: key))
        request.headers = ["Content-Type": "application/octet-stream"]
        _ = try await self.calling("store an entry", .store) { try await self.downloads.response(for: request) }
    }

    public func remove(_ key: CacheKey) async throws -> Bool {
        let object = self.names.object(of: key)
        return try await self.calling("remove an entry", .removal) {
            // The answer to a deletion does not tell whether there was an object.
            let isThere = try await self.sends(.head, object)
            try await self.delete(object)
            return isThere
        }
    }

    /// Removes all entries of the family of `key` with any revision, and returns whether there were any.
    ///
    /// The tier lists them page by page, and deletes up to 16 entries of a page at once.
    public func removeFamily(of key: CacheKey) async throws -> Bool {
        let family = self.names.family(of: key)
        return try await self.calling("remove the entries of a family", .removal) {
            var hasRemoved = false
            var page: String?
            repeat {
                let listing = try await self.listing(of: family, page: page)
                let objects = listing.keys.filter { ObjectNames.isObject($0, of: family) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (number, object) in objects.enumerated() {
                        if number >= Self.deletionCount { _ = try await group.next() }
                        group.addTask { try await self.delete(object) }
                    }
                    try await group.waitForAll()
                }
                hasRemoved = hasRemoved || !objects.isEmpty
                page = listing.nextPage
            } while page != nil
            return hasRemoved
        }
    }

    // MARK: Circuit

    private static let refusal = CacheError(
        code: .tierFailed,
        message: "The cold store has failed, so it is not asked for a while. The tier tries it again by itself."
    )

    /// Runs the requests of one call unless the circuit is open, and records whether the store answered.
    private func calling<Result>(
        _ purpose: String,
        _ act: Act,
        _ requests: () async throws -> Result
    ) async throws -> Result {
        let start = self.configuration.now()
        guard self.changing({ $0.admits(act, at: start) }) else { throw Self.refusal }
        do {
            let result = try await requests()
            self.succeed(act)
            return result
        } catch is CancellationError where self.configuration.now() - start < self.configuration.timeBudget * 0.8 {
            // The caller left. A later cancellation comes from the time budget, and counts as a failure.
            self.changing { $0[act].abandon(at: start) }
            throw CancellationError()
        } catch let error as DownloadError where Self.isAnswer(error) {
            let (failure, now) = (self.failure(error, to: purpose), self.configuration.now())
            self.succeed(act)
            if self.changing({ $0.mustReportRefusal(at: now) }) {
                self.configuration.report(.unsuitableSetting(Self.reason(failure)))
            }
            throw failure
        } catch {
            let (failure, now) = (self.failure(error, to: purpose), self.configuration.now())
            if self.changing({ $0[act].fail(at: now) }) {
                self.configuration.report(.circuitOpened(reason: Self.reason(failure)))
            }
            throw failure
        }
    }

    private func succeed(_ act: Act) {
        if self.changing({ $0[act].succeed() }) { self.configuration.report(.circuitClosed) }
    }

    /// Changes the circuits.
    ///
    /// It is not inlined into an asynchronous function; see `SharedTask`.
    @inline(never)
    private func changing<Result>(_ change: (inout Circuits) -> Result) -> Result {
        self.circuits.withLock { change(&$0) }
    }

    /// Whether the store has answered that it refuses the request, or that it is full.
    private static func isAnswer(_ error: DownloadError) -> Bool {
        if error.code == .tooManyRedirects { return true }
        guard error.code == .badStatus, let status = error.status else { return false }
        return status < 500 && status != 429 || status == 507
    }

    private static func reason(_ failure: any Error) -> String {
        (failure as? CacheError)?.message ?? "It does not answer within the time budget."
    }

    // MARK: Requests

    /// The bytes at the start of an object that usually have its key and its metadata.
    private static let startByteCount = 16 << 10

    /// The most bytes of an object beyond the bytes of its entry: the key, the metadata and checksums.
    private static let maximumHeadSize = 1 << 20

    /// The most bytes of a list of 1,000 keys, each of which has at most 1,024 bytes.
    private static let maximumListSize = 8 << 20

    /// The number of objects that are deleted at once.
    private static let deletionCount = 16

    /// The codes of failed responses that no entry of this tier can cause.
    private static let foreign: Set<TintypeErrorCode> = [.bodyTooLarge, .emptyBody]

    private func delete(_ object: String) async throws {
        _ = try await self.sends(.delete(), object)
    }

    /// Sends a request for an object, and returns whether the store has it.
    private func sends(_ method: DownloadRequest.Method, _ object: String) async throws -> Bool {
        do {
            _ = try await self.downloads.response(for: self.request(method, object), priority: .high)
            return true
        } catch let error as DownloadError where error.status == 404 {
            return false
        }
    }

    private func listing(of family: String, page: String?) async throws -> ObjectListing {
        let token = page.map { (name: "continuation-token", value: Array($0.utf8)) }
        let items = [("list-type", "2"), ("max-keys", "\(self.configuration.pageSize)"), ("prefix", family)]
        let query = [token].compactMap(\.self) + items.map { ($0.0, Array($0.1.utf8)) }
        var request = try self.request(.get, "", query: query)
        request.maximumBodySize = Self.maximumListSize
        let response = try await self.downloads.response(for: request, priority: .high)
        guard let listing = ObjectListing(response.body), listing.keys.count <= self.configuration.pageSize else {
            throw DownloadError(
                code: .invalidResponse,
                message: "It answered a request for a list with something else; check the endpoint in its URL."
            )
        }
        return listing
    }

    /// Sends a look-up before all stores, with limits of its own and without a second try: a load waits for it.
    private func lookUp(_ request: DownloadRequest) async throws -> DownloadResponse {
        var request = request
        request.retryPolicy = .never
        request.firstByteTimeout = self.configuration.firstByteTimeout
        request.connectTimeout = self.configuration.firstByteTimeout
        return try await self.downloads.response(for: request, priority: .high)
    }

    /// Returns a request that shares no transfer, because it must see all earlier changes.
    private func request(
        _ method: DownloadRequest.Method,
        _ object: String,
        query: [(name: String, value: [UInt8])] = []
    ) throws -> DownloadRequest {
        do throws(DownloadError) {
            let endpoint = self.configuration.endpoint
            let url = try endpoint.url(bucket: self.configuration.bucket, key: Array(object.utf8), query: query)
            var request = DownloadRequest(url: url, method: method, credentials: self.configuration.credentials)
            request.token = RequestToken()
            return request
        } catch {
            throw self.failure(error, to: "make a request")
        }
    }

    private static let otherRegion = "The bucket is in another region; write its region into the URL of the tier."

    private func failure(_ error: any Error, to act: String) -> any Error {
        guard let error = error as? DownloadError else { return error }
        let advice =
            switch error.status {
            case 301, 307, 308: Self.otherRegion
            case 400, 401, 403:
                "The store refused the key; check it, its secret, the region, the clock, and the permissions s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket."
            case 404: "There is no such bucket; create it or correct the URL of the tier."
            case 429, 503: "The store is overloaded; spread the entries over more buckets or raise its limits."
            default: error.code == .tooManyRedirects ? Self.otherRegion : error.message
            }
        let status = error.status.map { " (status \($0))" } ?? ""
        return CacheError(
            code: .tierFailed,
            message: "The cold store \(self.configuration.bucket) could not \(act)\(status). \(advice)"
        )
    }
}
