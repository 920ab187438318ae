public import FoundationEssentials
public import TintypeCaching
public import TintypeHTTP
import TintypeRendering

/// Loaded bytes and what is known about them.
public struct DataResponse: Sendable {
    /// The encoded bytes, as the origin sent them.
    public let data: Data
    /// Where they came from.
    public let source: LoadSource
    /// What is known of them.
    public let metadata: EntryMetadata
    /// The header fields that HTTP hands on with the bytes, from an origin or a cache.
    ///
    /// Those of a connection are not among them. Of a response that was stored, `Age` is as of now, and fields
    /// that the origin does not want reused are left out. Empty where no response is known.
    public let headers: HeaderFields
    /// Why the bytes are not on disk, where the request waited for the store.
    public let storeError: LoadError?
    /// What became of the cached bytes, where their freshness was in question; `nil` where it was not,
    /// or nothing was cached.
    public let revalidation: Revalidation?
    /// Whether HTTP permits to store what is made of the bytes.
    let mayBeKept: Bool
    private let call: CallRecord?

    /// Where the time went.
    public var metrics: LoadMetrics { self.call?.metrics ?? LoadMetrics() }

    /// Creates the response to `request`, which drops what only other callers of the load have asked for.
    init(_ body: Body, for request: ImageRequest) {
        self.data = body.data
        self.source = body.source
        self.metadata = body.metadata
        self.headers = body.headers
        self.storeError = request.options.contains(.waitForStore) ? body.storeError : nil
        self.revalidation = body.revalidation
        self.mayBeKept = body.mayBeKept
        self.call = body.call
    }
}
