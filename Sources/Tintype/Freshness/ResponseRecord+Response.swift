import FoundationEssentials
import TintypeCaching
import TintypeDownloading

extension ResponseRecord {
    /// Records a response as it came from its origin.
    ///
    /// `requestHeaders` are all fields of the request that it answers. Where the request was redirected
    /// first, nothing is known of how long that holds, so the response is stale from the start.
    convenience init(
        status: Int,
        headers: HTTPHeaders,
        requestHeaders: HTTPHeaders,
        requestDate: Date,
        responseDate: Date,
        isShared: Bool,
        wasRedirected: Bool = false
    ) {
        self.init(
            status: status,
            fields: HopByHopFields.removed(from: headers),
            requestHeaders: requestHeaders,
            requestDate: requestDate,
            responseDate: responseDate,
            isShared: isShared,
            wasRedirected: wasRedirected
        )
    }

    private convenience init(
        status: Int,
        fields: [Field],
        requestHeaders: HTTPHeaders,
        requestDate: Date,
        responseDate: Date,
        isShared: Bool,
        wasRedirected: Bool
    ) {
        let byName = Dictionary(grouping: fields) { $0.name.lowercased() }.mapValues { $0.map(\.value) }
        let values = { (name: String) in byName[name.lowercased()] ?? [] }
        var freshness = Freshness(
            requestDate: requestDate,
            responseDate: responseDate,
            isShared: isShared,
            values: values
        )
        if wasRedirected {
            freshness.lifetime = 0
            freshness.staleWhileRevalidate = 0
        }
        self.init(
            status: status,
            fields: fields,
            requestDate: requestDate,
            responseDate: responseDate,
            selectionDigest: RequestSelection.names(in: values("Vary")).flatMap {
                RequestSelection.digest(of: $0, in: requestHeaders)
            },
            freshness: freshness
        )
    }

    /// The record after a 304 (RFC 9111, 3.2 and 4.3.4): the fields of the 304 take the place of those of
    /// their names, and the age is counted anew.
    ///
    /// The body is stored without its content coding and whole, so that fields about these and the length
    /// stay as they are.
    func updated(
        by headers: HTTPHeaders,
        requestHeaders: HTTPHeaders,
        requestDate: Date,
        responseDate: Date,
        isShared: Bool,
        wasRedirected: Bool = false
    ) -> ResponseRecord {
        let bodyFields: Set = ["content-length", "content-encoding", "content-range"]
        var fresh = HopByHopFields.removed(from: headers).filter { !bodyFields.contains($0.name.lowercased()) }
        let names = Set(fresh.map { $0.name.lowercased() })
        if !names.contains("date") {
            // The next whole second: a date in the past would count as age.
            let second = responseDate.timeIntervalSince1970.rounded(.up)
            fresh.append(Field(name: "Date", value: HTTPDate.text(of: Date(timeIntervalSince1970: second))))
        }
        // An age is about one message only.
        let replaced = names.union(["age", "date"])
        let kept = self.fields.filter { !replaced.contains($0.name.lowercased()) }
        return ResponseRecord(
            status: self.status,
            fields: kept + fresh,
            requestHeaders: requestHeaders,
            requestDate: requestDate,
            responseDate: responseDate,
            isShared: isShared,
            wasRedirected: wasRedirected
        )
    }

    /// The fields that decide whether a picture may be served, and by what its origin is asked for news.
    private static let decisiveFields: Set = [
        "age", "cache-control", "content-type", "date", "etag", "expires", "last-modified", "pragma", "vary",
    ]

    /// The record as it lies beside a picture in memory, without the fields that decide nothing.
    ///
    /// RFC 9111 (3.1) has a cache store all fields with a response. A decoded picture is none: the response, with its
    /// bytes, is on disk.
    var reduced: ResponseRecord {
        let fields = self.fields.filter { Self.decisiveFields.contains($0.name.lowercased()) }
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

    /// Whether the response may select this record's representation for `headers` (RFC 9111, 4.1).
    func isSelected(by headers: HTTPHeaders) -> Bool {
        guard let names = RequestSelection.names(in: self.values(for: "Vary")) else {
            // Nothing selects `Vary: *`; the origin can still say that it is current.
            return true
        }
        return RequestSelection.digest(of: names, in: headers) == self.selectionDigest
    }

    /// Whether `other` says the same and makes the stored response no more reusable, so that storing
    /// it would change nothing but dates.
    func isAsGoodAs(_ other: ResponseRecord) -> Bool {
        !self.freshness.isEverReusable && !other.freshness.isEverReusable && self.essence == other.essence
    }

    /// The fields without those about the message, whatever their order.
    private var essence: Set<Field> {
        Set(self.fields.filter { !["date", "age"].contains($0.name.lowercased()) })
    }
}

extension Freshness {
    /// Whether there is any time at which the response may be served unasked.
    fileprivate var isEverReusable: Bool {
        max(self.lifetime, self.staleWhileRevalidate, self.staleIfError) > 0
    }
}
