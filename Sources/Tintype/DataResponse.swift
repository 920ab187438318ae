// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCaching
public import TintypeHTTP
import TintypeRequests

/// Loaded bytes with their source and metadata.
public struct DataResponse: Sendable {
    /// The encoded bytes, as the origin sent them.
    public let data: Data
    /// The tier or origin of the bytes.
    public let source: LoadSource
    /// The metadata of the bytes.
    public let metadata: EntryMetadata
    /// The header fields that HTTP hands on with the bytes, from an origin or a cache.
    ///
    /// They lack the fields of the connection. For a stored response, `Age` is the age now, and fields are missing that
    /// the origin does not want reused. Empty if there is no response.
    public let headers: HeaderFields
    /// The reason why the bytes are not on disk, if the request waited for the store.
    public let storeError: LoadError?
    /// The result of the revalidation; `nil` if the cached bytes were fresh, or if there were none.
    public let revalidation: Revalidation?
    /// Whether HTTP permits to store images of the bytes.
    let mayBeKept: Bool
    private let call: CallRecord?
    private let tier: String?

    /// The durations of the parts of the load, and the tier that had the bytes.
    public var metrics: LoadMetrics {
        var metrics = self.call?.metrics ?? LoadMetrics()
        metrics.tier = metrics.tier ?? self.tier
        return metrics
    }

    /// Creates the response to `request`, without the parts that only other callers of the load requested.
    init(_ body: Body, for request: ImageRequest) {
        self.data = body.data
        self.source = body.source
        self.metadata = body.metadata
        self.headers = body.headers
        self.storeError = request.options.contains(.waitForStore) ? body.storeError : nil
        self.revalidation = body.revalidation
        self.mayBeKept = body.mayBeKept
        self.call = body.call
        self.tier = body.tier
    }
}
