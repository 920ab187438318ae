public import FoundationEssentials

/// What an HTTP response said beside its body, as far as its reuse depends on it.
///
/// It is immutable and shared: all that is made of one response points to one record. What decides
/// freshness was parsed once, when the response came, and is at hand as numbers.
public final class ResponseRecord: Sendable {
    /// A header field as it was received.
    public struct Field: Sendable, Hashable {
        /// The name, in the letters of the origin.
        public let name: String
        /// The value, without the white space around it.
        public let value: String

        /// Creates a field.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The status code.
    public let status: Int
    /// The header fields in their order, without those that belong to the connection (RFC 9111, 3.1).
    public let fields: [Field]
    /// When the request was sent.
    public let requestDate: Date
    /// When the response, or the last one that confirmed it, was received.
    public let responseDate: Date
    /// A digest of the request fields that the response's `Vary` names; `nil` where it names none.
    ///
    /// A digest, because a request's fields may hold secrets, and a disk should not.
    public let selectionDigest: String?
    /// Until when the response may be reused, and under what conditions.
    public let freshness: Freshness

    /// Creates a record.
    public init(
        status: Int,
        fields: [Field],
        requestDate: Date,
        responseDate: Date,
        selectionDigest: String?,
        freshness: Freshness
    ) {
        self.status = status
        self.fields = fields
        self.requestDate = requestDate
        self.responseDate = responseDate
        self.selectionDigest = selectionDigest
        self.freshness = freshness
    }

    /// The bytes that the fields take in memory.
    var memoryByteCount: Int {
        self.fields.reduce(self.selectionDigest.map { EntryMetadata.memoryByteCount(of: $0) } ?? 0) { sum, field in
            sum + MemoryLayout<Field>.stride + EntryMetadata.memoryByteCount(of: field.name)
                + EntryMetadata.memoryByteCount(of: field.value)
        }
    }

    /// The values of all fields called `name`, in their order; the case of ASCII letters does not count.
    public func values(for name: String) -> [String] {
        let name = name.lowercased()
        return self.fields.filter { $0.name.lowercased() == name }.map(\.value)
    }
}

// MARK: - Hashable

extension ResponseRecord: Hashable {
    public static func == (left: ResponseRecord, right: ResponseRecord) -> Bool {
        left === right
            || left.status == right.status && left.requestDate == right.requestDate
                && left.responseDate == right.responseDate && left.selectionDigest == right.selectionDigest
                && left.freshness == right.freshness && left.fields == right.fields
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.status)
        hasher.combine(self.responseDate)
        hasher.combine(self.fields)
    }
}
