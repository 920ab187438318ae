// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// The part of an HTTP response, besides its body, on which its reuse depends.
///
/// A record is immutable and shared: everything that is made of one response points to one record. The values that
/// decide freshness were parsed once, when the response came.
public final class ResponseRecord: Sendable {
    /// The status code.
    public let status: Int
    /// The header fields in their order, without the fields of the connection (RFC 9111, 3.1).
    public let fields: HeaderFields
    /// When the request was sent.
    public let requestDate: Date
    /// When the response, or the last one that confirmed it, was received.
    public let responseDate: Date
    /// A digest of the request fields that the response's `Vary` names; `nil` if it names no field.
    ///
    /// It is a digest because request fields may contain secrets, which do not belong on a disk.
    public let selectionDigest: String?
    /// Until when the response may be reused, and under what conditions.
    public let freshness: Freshness

    /// Creates a record.
    ///
    /// ```swift
    /// let now = Date()
    /// let record = ResponseRecord(
    ///     status: 200, fields: ["Cache-Control": "max-age=60"], requestDate: now, responseDate: now,
    ///     selectionDigest: nil, freshness: Freshness(birth: now, lifetime: 60)
    /// )
    /// ```
    public init(
        status: Int,
        fields: HeaderFields,
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

    /// The values of all fields called `name`, in their order; the case of ASCII letters does not count.
    ///
    /// ```swift
    /// let directives = metadata.response?.values(for: "Cache-Control")
    /// ```
    public func values(for name: String) -> [String] {
        self.fields.values(for: name)
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

// MARK: - Responses

extension ResponseRecord {
    /// The fields that belong to a connection instead of a response, in addition to the ones that `Connection` names.
    private static let connectionNames: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "transfer-encoding", "upgrade",
    ]

    /// The fields of a response that are stored (RFC 9111, 3.1).
    static func storedFields(of headers: HeaderFields) -> HeaderFields {
        let named = FieldList.elements(of: headers.values(for: "Connection")).map { $0.lowercased() }
        return headers.removing(self.connectionNames.union(named))
    }

    /// Records a response of an origin.
    ///
    /// `requestHeaders` are all fields of the request. If the request was redirected, the lifetime of the redirect is
    /// unknown, so the response is stale from the start.
    package convenience init(
        status: Int,
        headers: HeaderFields,
        requestHeaders: HeaderFields,
        requestDate: Date,
        responseDate: Date,
        isShared: Bool,
        wasRedirected: Bool = false
    ) {
        let fields = Self.storedFields(of: headers)
        var freshness = Freshness(fields, requestDate: requestDate, responseDate: responseDate, isShared: isShared)
        if wasRedirected {
            freshness.lifetime = 0
            freshness.staleWhileRevalidate = 0
        }
        self.init(
            status: status,
            fields: fields,
            requestDate: requestDate,
            responseDate: responseDate,
            selectionDigest: VarySelection.names(in: fields.values(for: "Vary")).flatMap {
                VarySelection.digest(of: $0, in: requestHeaders)
            },
            freshness: freshness
        )
    }

    /// Returns the record after a 304 (RFC 9111, 3.2 and 4.3.4): the fields of the 304 replace fields of the same
    /// names, and the age starts anew.
    ///
    /// The body is stored whole and without its content coding, so the fields about these and the length stay the same.
    package func updated(
        by headers: HeaderFields,
        requestHeaders: HeaderFields,
        requestDate: Date,
        responseDate: Date,
        isShared: Bool,
        wasRedirected: Bool = false
    ) -> ResponseRecord {
        var fresh = Self.storedFields(of: headers).removing(["content-length", "content-encoding", "content-range"])
        // An age is about one message only.
        let kept = self.fields.removing(fresh.names.union(["age", "date"]))
        if fresh["Date"] == nil {
            // The next whole second: a date in the past would count as age.
            let second = responseDate.timeIntervalSince1970.rounded(.up)
            fresh.append(HTTPDate.text(of: Date(timeIntervalSince1970: second)), for: "Date")
        }
        return ResponseRecord(
            status: self.status,
            headers: kept + fresh,
            requestHeaders: requestHeaders,
            requestDate: requestDate,
            responseDate: responseDate,
            isShared: isShared,
            wasRedirected: wasRedirected
        )
    }

    /// The fields that decide whether an image may be served, and by what its origin is asked for news.
    private static let decisiveNames: Set<String> = [
        "age", "cache-control", "content-type", "date", "etag", "expires", "last-modified", "pragma", "vary",
    ]

    /// The record for an image in memory, without the fields that decide nothing.
    ///
    /// RFC 9111 (3.1) lets a cache store all fields with a response. A decoded image is not a response: that is on
    /// disk, with its bytes.
    package var reduced: ResponseRecord {
        let fields = self.fields.filter { Self.decisiveNames.contains($0.name.lowercased()) }
        guard fields.count < self.fields.count else { return self }
        return ResponseRecord(
            status: self.status,
            fields: fields,
            requestDate: self.requestDate,
            responseDate: self.responseDate,
            selectionDigest: self.selectionDigest,
            freshness: self.freshness
        )
    }

    /// Whether `other` says the same and makes the stored response no more reusable, so that storing
    /// it would change nothing but dates.
    package func isAsGoodAs(_ other: ResponseRecord) -> Bool {
        !self.freshness.isEverReusable && !other.freshness.isEverReusable && self.essence == other.essence
    }

    /// Whether this is `other`, confirmed once more by its origin: only dates differ.
    package func isRenewal(of other: ResponseRecord) -> Bool {
        var freshness = other.freshness
        freshness.birth = self.freshness.birth
        return self.status == other.status && self.selectionDigest == other.selectionDigest
            && self.freshness == freshness && self.essence == other.essence
    }

    /// The fields without those about the message, whatever their order.
    private var essence: Set<HeaderField> { Set(self.fields.removing(["date", "age"])) }

    /// Returns the fields as HTTP hands them on.
    ///
    /// `date` is now if the response is reused without asking its origin (RFC 9111, 4 and 5.2.2.4): the result then has
    /// the present age, and no field that `no-cache` names. `date` is `nil` if the origin has just sent or confirmed
    /// the response.
    package func servedFields(reusedAt date: Date?) -> HeaderFields {
        guard let date else { return self.fields }
        var headers = self.fields.removing(CacheControl(self.values(for: "Cache-Control")).fieldsNotToReuse)
        headers["Age"] = String(Int(min(self.freshness.age(at: date), DeltaSeconds.maximum)))
        return headers
    }
}

extension Freshness {
    /// Whether there is any time at which the response may be served unasked.
    fileprivate var isEverReusable: Bool {
        max(self.lifetime, self.staleWhileRevalidate, self.staleIfError) > 0
    }
}
