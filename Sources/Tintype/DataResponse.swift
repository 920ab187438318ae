public import FoundationEssentials
public import TintypeCaching
import TintypeConcurrency
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
    public private(set) var storeError: LoadError?
    /// What became of the cached bytes, where their freshness was in question; `nil` where it was not,
    /// or nothing was cached.
    public let revalidation: Revalidation?
    /// Whether HTTP permits to keep what is made of the bytes.
    let mayBeKept: Bool
    /// How the bytes came, where they may be the newest of their source.
    let arrival: LoadTable.Arrival?
    /// The response of the origin, if the bytes are one.
    let fetched: FetchedResponse?
    /// What the loads wanted for which the bytes were stored, or were not; `nil` where nothing is to be stored.
    let keptFor: LoadTable.Demand?
    /// What counts the bytes, as long as the loader has them.
    var claim: ByteClaim?
    /// What the load took, and the call that got the response; `nil` for what was found without a load.
    var call: CallRecord?
    /// The load's part in the decodes that it shares with other loads of the bytes; `nil` if it shares none.
    var sharing: DecodeSharing.Part?
    /// The flight that brought them.
    var flightID: LoadTable.ID?

    /// Where the time went.
    public var metrics: LoadMetrics { self.call?.metrics ?? LoadMetrics() }

    init(
        data: Data,
        source: LoadSource,
        metadata: EntryMetadata,
        headers: HeaderFields = [:],
        storeError: LoadError? = nil,
        revalidation: Revalidation? = nil,
        mayBeKept: Bool = true,
        arrival: LoadTable.Arrival? = nil,
        fetched: FetchedResponse? = nil,
        keptFor: LoadTable.Demand? = nil,
        claim: ByteClaim? = nil
    ) {
        self.data = data
        self.source = source
        self.metadata = metadata
        self.headers = headers
        self.storeError = storeError
        self.revalidation = revalidation
        self.mayBeKept = mayBeKept
        self.arrival = arrival
        self.fetched = fetched
        self.keptFor = keptFor
        self.claim = claim
    }

    /// The same, as the caller gets it that asked with `request`.
    ///
    /// From then on the bytes are the caller's; pictures that are made of them may still count them.
    func finished(for request: ImageRequest) -> DataResponse {
        var copy = self
        copy.claim = nil
        if !request.options.contains(.waitForStore) { copy.storeError = nil }
        return copy
    }
}
