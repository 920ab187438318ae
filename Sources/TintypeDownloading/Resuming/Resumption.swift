// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// The part of a body that an earlier try or transfer has received, and the request for the rest.
///
/// Every function is pure: it judges the response that it gets.
struct Resumption {
    /// The address of the bytes that are here: the others must come from there as well.
    let source: [UInt8]
    /// The strong validator that the other part must have as well.
    let validator: String
    /// The bytes that are here.
    let offset: Int
    /// The bytes of the whole.
    let total: Int
    /// The fields that came with the bytes that are here.
    let wholeHeaders: HeaderFields

    /// Whether a request asks for the whole of a resource, of which a part can be asked for instead.
    static func isPossible(
        _ method: DownloadRequest.Method,
        headers: HeaderFields,
        accepting codes: StatusCodes
    ) -> Bool {
        guard method == .get, codes.contains(206), codes.contains(200) else { return false }
        let conditions = ["Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"]
        return headers.isEmpty || conditions.allSatisfy { headers[$0] == nil }
    }

    /// The meaning of a response for the bytes that are here.
    enum Answer {
        /// It brings the rest; these are the fields of the whole.
        case rest(HeaderFields)
        /// It brings the whole, perhaps of another version.
        case whole
        /// It brings neither.
        case useless
    }

    /// Judges the answer to a request.
    ///
    /// - Parameters:
    ///   - response: The answer.
    ///   - isIdentity: Whether its body has no codings.
    ///   - isAsked: Whether the request asked for the rest.
    ///   - count: The number of bytes that are already here.
    /// - Returns: The use of the answer.
    func answer(of response: ResponseState, isIdentity: Bool, isAsked: Bool, count: Int) -> Answer {
        // The request had no condition that it could answer.
        if response.status == 304, isAsked { return .useless }
        guard response.status == 206 else { return .whole }
        guard isAsked, self.isContinued(by: response.headers), isIdentity, count == self.offset else {
            return .useless
        }
        return .rest(self.completed(by: response.headers))
    }

    /// Returns whether an error may only be the answer to a request for the rest.
    ///
    /// The bytes that are here must not prevent this load and later ones from getting the whole.
    ///
    /// - Parameters:
    ///   - error: The error of a request that asked for the rest.
    ///   - hasGrown: Whether the request has added bytes.
    /// - Returns: Whether the next request must ask for the whole body.
    static func isRefused(by error: DownloadError, hasGrown: Bool) -> Bool {
        switch error.code {
        case .invalidResponse, .emptyBody, .bodyTooLarge, .unacceptableContentType: true
        // Other statuses depend on the time of the request, or on the resource.
        case .badStatus: error.status.map { [304, 416, 501].contains($0) } ?? false
        // A rest that is whole and brings no bytes; one that the transport cut has a cause.
        case .bodyCutShort: error.underlyingError == nil && !hasGrown
        default: false
        }
    }

    /// The fields that ask for the rest, or for everything if it is another version by now.
    var headers: HeaderFields {
        ["Range": "bytes=\(self.offset)-", "If-Range": self.validator]
    }

    /// Whether a 206 response with these fields continues the bytes that are here.
    ///
    /// `If-Range` has made sure already, but a server that is wrong about it must not mix two versions: a
    /// part without the validator counts for nothing (RFC 9110, 15.3.7.3).
    func isContinued(by headers: HeaderFields) -> Bool {
        guard headers.values(for: "Content-Range").count == 1,
            let range = headers["Content-Range"].flatMap({ ContentRange($0) }),
            range.first == self.offset, range.total == self.total,
            // Several parts in one body, with lines of their own around each (RFC 9110, 14.6).
            !headers.values(for: "Content-Type").contains(where: { $0.lowercased().hasPrefix("multipart/byteranges") })
        else { return false }
        let isTag = self.validator.hasPrefix("\"")
        return headers.values(for: isTag ? "ETag" : "Last-Modified") == [self.validator]
    }

    /// The fields of the whole that a part with these fields completes: its own take the place of older ones
    /// (RFC 9110, 15.3.7.3).
    func completed(by headers: HeaderFields) -> HeaderFields {
        var whole = self.wholeHeaders.removing(headers.names) + headers.removing(Self.partNames)
        whole.append("\(self.total)", for: "Content-Length")
        return whole
    }

    /// The fields of a response that are about the whole, and hold for longer than one message.
    static func fieldsOfWhole(_ headers: HeaderFields) -> HeaderFields {
        headers.removing(self.partNames.union(self.messageNames))
    }

    private static let partNames: Set<String> = ["content-range", "content-length"]
    private static let messageNames: Set<String> = [
        "age", "connection", "date", "keep-alive", "proxy-authenticate", "proxy-connection", "set-cookie",
        "set-cookie2", "trailer", "transfer-encoding", "upgrade", "www-authenticate",
    ]
}

// In an extension, so that the memberwise initializer stays.

extension Resumption {
    /// The resumption of a body that broke off, or `nil` if the rest cannot be asked for: the server must offer it, the
    /// version must be known for sure, and something must be here, but not all.
    ///
    /// - Parameters:
    ///   - count: The bytes that are here.
    ///   - response: The response that broke off.
    ///   - plan: The body that its head promised.
    ///   - earlier: The validator that an earlier part had.
    init?(
        of count: Int,
        response: ResponseState,
        plan: TransferMachine.BodyPlan,
        earlier: String?
    ) {
        guard response.status == 200 || response.status == 206, plan.codings == .identity,
            count > 0, let total = plan.expectedBytes, count < total,
            response.status == 206 || response.headers["Accept-Ranges"]?.lowercased() == "bytes",
            let validator = Validators.strong(in: response.headers, now: plan.responseTime) ?? earlier
        else { return nil }
        self.source = PartialBodyKey.source(response.address)
        self.validator = validator
        self.offset = count
        self.total = Int(total)
        self.wholeHeaders = Self.fieldsOfWhole(response.headers)
    }

    /// The resumption of a body of which an earlier transfer left a part.
    init(_ partial: PartialBody) {
        self.source = partial.source
        self.validator = partial.validator
        self.offset = partial.bytes.count
        self.total = partial.total
        self.wholeHeaders = partial.headers
    }
}
