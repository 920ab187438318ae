public import FoundationEssentials
public import TintypeHTTP

/// What a response says before its body.
public struct ResponseHead: Sendable {
    /// The status, one that the request accepts.
    public let status: Int
    /// The header fields, duplicates included, in their order.
    public let headers: HeaderFields
    /// Where the body comes from, after redirects.
    public let url: URL
    /// The bytes that the body will have, or `nil` where the server does not say, or compresses them.
    public let expectedBytes: Int64?
}
