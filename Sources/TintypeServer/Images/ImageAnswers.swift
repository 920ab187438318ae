// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeHTTP
import TintypeImgproxy

/// Answers with images, and with the reasons why an image is missing.
///
/// It is a class, because each request would otherwise copy its values and count their references.
final class ImageAnswers: Sendable {
    private let configuration: ImageServer.Configuration

    init(_ configuration: ImageServer.Configuration) {
        self.configuration = configuration
    }

    /// The default number of seconds in `Retry-After`.
    static let retrySeconds = 1

    /// Returns an encoded image, a part of it, or 304 if the client has it already.
    ///
    /// The bytes come from `file`, if there is one.
    func answer(
        with response: EncodedResponse,
        in file: CachedFile? = nil,
        of route: ImageRoute,
        to head: RequestHead
    ) -> ServerAnswer {
        let etag = response.etag
        let body: ServerAnswer.Body =
            file.map { .file($0, offset: $0.offset, count: $0.byteCount) } ?? .data(response.data)
        let note = Self.note(response, route)
        let prepared: ImageRoute.Prepared
        let isReady = response.source == .memory || response.source == .disk
        if isReady, let known = route.prepared(etag: etag, source: response.source) {
            prepared = known
        } else {
            let modified = Self.lastModified(response.metadata)
            prepared = ImageRoute.Prepared(
                etag: etag,
                source: response.source,
                lastModified: modified?.date,
                fields: self.fields(response, etag, lastModified: modified?.text, of: route),
                byteCount: body.count
            )
            // Fields that contain a time, or describe a new image, would not fit the next answer.
            if isReady, !self.isTimed(route) { route.prepare(prepared) }
        }
        // Fast path: the usual condition needs no dates.
        if head.onlyValue(for: "If-None-Match") == etag, head["If-Match"] == nil, head["If-Unmodified-Since"] == nil {
            return ServerAnswer(prepared.notModified, note: note)
        }
        guard head.mayBeConditional else { return ServerAnswer(prepared.head, body: body, note: note) }
        return self.answer(
            to: head,
            with: body,
            named: "image",
            prepared: prepared,
            note: note
        )
    }

    /// Returns the bytes of a source as they are.
    func answer(
        with body: ServerAnswer.Body,
        _ metadata: EntryMetadata,
        source: LoadSource,
        _ format: ImageFormat,
        of route: ImageRoute,
        to head: RequestHead
    ) -> ServerAnswer {
        // The cache's digest is enough: a cryptographic one would take as long as sending the bytes.
        let etag = "\"\(String(metadata.bodyDigest ?? BodyDigest.value(of: body.bytes), radix: 16))\""
        var fields = self.commonFields(of: route, metadata: metadata)
        fields.append(format.mediaType, for: "Content-Type")
        fields.append(etag, for: "ETag")
        fields.append("bytes", for: "Accept-Ranges")
        fields.append(self.disposition(of: route, format), for: "Content-Disposition")
        fields.append(source.rawValue, for: "X-Cache")
        return self.answer(
            to: head,
            with: body,
            named: "file",
            prepared: ImageRoute.Prepared(
                etag: etag,
                source: source,
                lastModified: nil,
                fields: fields,
                byteCount: body.count
            ),
            note: AnswerNote(cache: source.rawValue, format: format.name, source: route.address.source)
        )
    }

    /// Returns the body, a part of it, or a 304, 412 or 416, as the conditions and the range of the request demand.
    ///
    /// - Parameters:
    ///   - head: The request.
    ///   - body: The whole body.
    ///   - name: The word for the body in a refusal.
    ///   - prepared: The heads of an answer with the whole body, and of a 304.
    ///   - note: The values for the log.
    /// - Returns: The answer.
    private func answer(
        to head: RequestHead,
        with body: ServerAnswer.Body,
        named name: String,
        prepared: ImageRoute.Prepared,
        note: AnswerNote
    ) -> ServerAnswer {
        let (etag, now) = (prepared.etag, Date())
        switch Preconditions.evaluate(head, entityTag: etag, lastModified: prepared.lastModified, now: now) {
        case .notModified: return ServerAnswer(prepared.notModified, note: note)
        case .failed: return self.refusal(412, "The \(name) is not the one that the request wants.")
        case .proceed: break
        }
        // A date in `If-Range` matches no result, because all results of a source have the same `Last-Modified`.
        let selection = RangeSelection(head, length: body.count, entityTag: etag, lastModified: nil, now: now)
        guard let range = selection.contentRange(length: body.count) else {
            return ServerAnswer(prepared.head, body: body, note: note)
        }
        var fields = prepared.notModified.fields
        fields.append(range, for: "Content-Range")
        guard case .part(let part) = selection else {
            fields.append(0, for: "Content-Length")
            return ServerAnswer(AnswerHead(status: 416, fields: fields), note: note)
        }
        fields.append(part.length, for: "Content-Length")
        return ServerAnswer(AnswerHead(status: 206, fields: fields), body: body.part(part), note: note)
    }

    /// Returns the log's values for an answer with an encoded image.
    private static func note(_ response: EncodedResponse, _ route: ImageRoute) -> AnswerNote {
        AnswerNote(
            cache: response.source.rawValue,
            format: response.metadata.formatName ?? "other",
            source: route.address.source
        )
    }

    /// Returns the fallback image instead of an error, which the log and the counters still record.
    func fallbackAnswer(_ response: EncodedResponse, for route: ImageRoute, after error: LoadError) -> ServerAnswer {
        let status = self.configuration.images.fallbackStatus ?? self.status(of: error)
        var note = Self.note(response, route)
        note.errorCode = "\(error.code)"
        note.message = "The fallback image was sent. \(self.explanation(of: error))"
        let modified = Self.lastModified(response.metadata)?.text
        var fields = self.fields(response, response.etag, lastModified: modified, of: route, isFallback: true)
        fields.append("1", for: "X-Image-Fallback")
        fields.append(response.data.count, for: "Content-Length")
        return ServerAnswer(AnswerHead(status: status, fields: fields), body: .data(response.data), note: note)
    }

    /// Returns the answer with the description of a source as JSON.
    func answer(withInformation data: Data, of route: ImageRoute) -> ServerAnswer {
        var head = AnswerHead(status: 200)
        head.fields.append("application/json", for: "Content-Type")
        head.fields.append(data.count, for: "Content-Length")
        head.fields.append(Self.cacheControl(of: route, seconds: 60), for: "Cache-Control")
        Self.addSecurity(to: &head.fields)
        if let origin = self.configuration.allowedOrigin {
            head.fields.append(origin, for: "Access-Control-Allow-Origin")
        }
        return ServerAnswer(head, body: .data(data))
    }

    // MARK: Fields

    /// The fields of an answer with an encoded image, except its length.
    private func fields(
        _ response: EncodedResponse,
        _ etag: String,
        lastModified: String?,
        of route: ImageRoute,
        isFallback: Bool = false
    ) -> FieldLines {
        var fields = self.commonFields(of: route, metadata: response.metadata, isFallback: isFallback)
        fields.append(response.mediaType, for: "Content-Type")
        fields.append(etag, for: "ETag")
        if let lastModified { fields.append(lastModified, for: "Last-Modified") }
        fields.append("bytes", for: "Accept-Ranges")
        if let format = WrittenFormats.all.first(where: { $0.mediaType == response.mediaType }) {
            fields.append(self.disposition(of: route, format), for: "Content-Disposition")
        }
        fields.append(response.width, for: "X-Result-Width")
        fields.append(response.height, for: "X-Result-Height")
        fields.append(response.source.rawValue, for: "X-Cache")
        return fields
    }

    /// Returns the origin's `Last-Modified`, or `nil` if it is not a date or lies in the future.
    private static func lastModified(_ metadata: EntryMetadata) -> (text: String, date: Date)? {
        let now = Date()
        guard let text = metadata.response?.values(for: "Last-Modified").first,
            let date = HTTPDate.parse(text, now: now), date <= now
        else { return nil }
        return (text, date)
    }

    private func commonFields(
        of route: ImageRoute,
        metadata: EntryMetadata,
        isFallback: Bool = false
    ) -> FieldLines {
        var fields = FieldLines()
        fields.append(self.cacheControl(of: route, metadata, isFallback), for: "Cache-Control")
        let caching = self.configuration.caching
        if caching.passesOriginLifetime, let freshness = metadata.response?.freshness {
            // The largest value that a cache sends (RFC 9111, 1.2.2).
            fields.append(Int(min(freshness.age(at: Date()), 2_147_483_648)), for: "Age")
        }
        if route.varies { fields.append("Accept", for: "Vary") }
        Self.addSecurity(to: &fields)
        if let origin = self.configuration.allowedOrigin { fields.append(origin, for: "Access-Control-Allow-Origin") }
        if caching.setsCanonicalLink, route.address.scheme.isWeb {
            fields.append("<\(route.request.url.absoluteString)>; rel=\"canonical\"", for: "Link")
        }
        return fields
    }

    /// The fields that keep browsers from taking an image for a document.
    private static func addSecurity(to fields: inout FieldLines) {
        let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
        fields.append(policy, for: "Content-Security-Policy")
        fields.append("nosniff", for: "X-Content-Type-Options")
    }

    /// Whether the fields of the route's answers change with time.
    private func isTimed(_ route: ImageRoute) -> Bool {
        route.address.options.expires != nil || self.configuration.caching.passesOriginLifetime
    }

    private func cacheControl(of route: ImageRoute, _ metadata: EntryMetadata, _ isFallback: Bool) -> String {
        var seconds = Int(self.configuration.caching.lifetime.components.seconds)
        var scope = "public"
        if self.configuration.caching.passesOriginLifetime, let response = metadata.response,
            !response.values(for: "Cache-Control").isEmpty || !response.values(for: "Expires").isEmpty
        {
            let control = CacheControl(response.values(for: "Cache-Control"))
            if control.has("no-store") { return "no-store" }
            if control.has("private") { scope = "private" }
            seconds = control.forbidsReuse ? 0 : Int(max(0, min(response.freshness.lifetime, 1e9)))
        }
        if isFallback, let lifetime = self.configuration.images.fallbackLifetime {
            seconds = min(seconds, Int(lifetime.components.seconds))
        }
        return Self.cacheControl(of: route, seconds: seconds, scope: scope)
    }

    /// Returns the `Cache-Control` for a lifetime, which ends with the URL at the latest.
    private static func cacheControl(of route: ImageRoute, seconds: Int, scope: String = "public") -> String {
        let rest = route.address.options.expires.map { max(0, $0 - Int(Date().timeIntervalSince1970)) }
        let seconds = min(seconds, rest ?? seconds)
        return seconds > 0 ? "max-age=\(seconds), \(scope)" : "no-cache"
    }

    /// The value of `Content-Disposition`.
    private func disposition(of route: ImageRoute, _ format: ImageFormat) -> String {
        let options = route.address.options
        var stem = options.fileName ?? Self.stem(of: route.request.url)
        // They separate folders.
        stem.unicodeScalars = String.UnicodeScalarView(stem.unicodeScalars.map { $0 == "/" || $0 == "\\" ? "_" : $0 })
        let name = String(stem.map { $0 == "\"" || !$0.isASCII ? "_" : $0 })
        let suffix = format == .jpeg ? "jpg" : format.name
        var value = "\(options.isAttachment ? "attachment" : "inline"); filename=\"\(name).\(suffix)\""
        if name != stem {
            // RFC 8187
            let encoded = PercentEncoding.encode((stem + "." + suffix).utf8)
            value += "; filename*=UTF-8''\(encoded)"
        }
        return value
    }

    private static func stem(of url: URL) -> String {
        let name = url.lastPathComponent
        guard !name.isEmpty, name != "/" else { return "image" }
        let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
        return stem.isEmpty || stem.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) ? "image" : stem
    }

    // MARK: Without an image

    /// Returns the answer to OPTIONS, with which a browser asks what another site may do (CORS).
    func answerToOptions(_ methods: String) -> ServerAnswer {
        var head = AnswerHead(status: 204)
        head.fields.append(methods, for: "Allow")
        if let origin = self.configuration.allowedOrigin {
            head.fields.append(origin, for: "Access-Control-Allow-Origin")
            head.fields.append("GET, HEAD, OPTIONS", for: "Access-Control-Allow-Methods")
            head.fields.append("86400", for: "Access-Control-Max-Age")
        }
        return ServerAnswer(head)
    }

    /// Returns the refusal of a request, with a reason for the client and the log.
    func refusal(
        _ status: Int,
        _ reason: String,
        fields: HeaderFields = [:],
        retrySeconds: Int = ImageAnswers.retrySeconds
    ) -> ServerAnswer {
        var fields = fields
        fields.append("no-store", for: "Cache-Control")
        fields.append("nosniff", for: "X-Content-Type-Options")
        if status == 503 { fields.append("\(retrySeconds)", for: "Retry-After") }
        return .text(status, reason + "\n", fields: fields, note: AnswerNote(errorCode: "\(status)", message: reason))
    }

    /// Returns the refusal of a method that the address does not answer.
    func wrongMethod(_ methods: String) -> ServerAnswer {
        self.refusal(405, "This address answers \(methods).", fields: ["Allow": methods])
    }

    /// The refusal of a request without the secret.
    var forbidden: ServerAnswer {
        .text(
            403,
            "Forbidden\n",
            fields: ["Cache-Control": "no-store"],
            note: AnswerNote(errorCode: "403", message: "The request does not carry the secret.")
        )
    }

    // MARK: Errors

    /// Returns the answer to a URL that the server refuses.
    func answer(_ refusal: RoutePlanner.Refusal) -> ServerAnswer {
        let text = self.configuration.explainsErrors ? refusal.message : refusal.publicText
        return self.errorAnswer(refusal.status, text, AnswerNote(errorCode: refusal.code, message: refusal.message))
    }

    /// Returns the answer to a request for which there is no place.
    func answer(_ refusal: Admission.Refusal, retrySeconds: Int) -> ServerAnswer {
        self.errorAnswer(
            refusal.status,
            refusal == .client ? "Too many requests" : "The server is busy",
            AnswerNote(
                errorCode: refusal == .client ? "client" : "overload",
                message: "No place is free for the request."
            ),
            wait: "\(retrySeconds)"
        )
    }

    /// Returns the answer to a failed load.
    func answer(_ error: LoadError, source: String) -> ServerAnswer {
        let (status, explanation) = (self.status(of: error), self.explanation(of: error))
        let text =
            self.configuration.explainsErrors
            ? explanation : error.status == 429 ? "Source is unreachable" : Self.publicText(status)
        // The origin limits the server, so the client must wait as long.
        let wait = error.status == 429 ? error.headers["Retry-After"].flatMap { self.seconds(ofRetryAfter: $0) } : nil
        let note = AnswerNote(source: source, errorCode: "\(error.code)", message: explanation)
        return self.errorAnswer(status, text, note, wait: wait)
    }

    /// Returns the seconds of an origin's `Retry-After`, at least 1 and at most as many as the server itself obeys.
    ///
    /// Returns `nil` if the value is malformed, or if the server obeys none.
    private func seconds(ofRetryAfter value: String) -> String? {
        guard let limit = self.configuration.loader.failureLifetimes.maximumRetryAfter,
            let delay = RetryAfter.delay(value, date: Date())
        else { return nil }
        return "\(max(Self.retrySeconds, Int((min(delay, limit) / .seconds(1)).rounded(.up))))"
    }

    /// Returns the status for a failed load.
    ///
    /// It is imgproxy's, with three exceptions: 502 for an origin without an answer and for a denied address, and 503
    /// for an origin's 429.
    private func status(of error: LoadError) -> Int {
        switch error.status {
        case 429: return 503
        // These statuses concern the connection between the server and the origin, so they would mislead the client.
        case 407, 408, 421, 499: return 502
        case let status? where 400..<500 ~= status: return status
        default: break
        }
        switch error.code.category {
        case .overLimit, .notAnImage: return 422
        case .request: return error.code == .notInCache ? 504 : 422
        case .refused: return error.code.httpStatus == 502 ? 502 : 404
        case .origin where error.code == .bodyCutShort: return 422
        case .origin, .busy, .internalFailure: return error.code.httpStatus
        }
    }

    private static func publicText(_ status: Int) -> String {
        switch status {
        case 422: "Invalid source image"
        case 500: "Internal error"
        case 503: "The server is busy"
        default: "Source is unreachable"
        }
    }

    /// The message of an error, with the setting that changes it.
    ///
    /// The library's own advice is for programs, and comes after a semicolon. The setting replaces it.
    private func explanation(of error: LoadError) -> String {
        let setting: String? =
            switch error.code {
            case .addressNotAllowed: "permit it with --allow-network"
            case .portNotAllowed: "permit it with --allow-port"
            // The patterns of --allow, which refuse redirects with this code, name that setting themselves.
            case .hostNotAllowed where !error.message.contains("--allow"):
                "permit names of local networks with --allow-network, and localhost with "
                    + "--allow-network loopback"
            case .tooManyPixels, .animationTooLarge: "the limit is --max-source-resolution"
            case .sideTooLong: "the limit is --max-source-side"
            case .bodyTooLarge, .tooManyBytes: "the limit is --max-source-size"
            case .timedOut, .tooSlow: "the limit is --download-time"
            case .unsupportedFormat, .notAnImage: "Tintype reads JPEG, PNG, WebP and GIF"
            case .truncated: "no part of an incomplete image is sent"
            default: nil
            }
        guard let setting else { return error.message }
        let event = error.message.firstRange(of: "; ").map { error.message[..<$0.lowerBound] + "." }
        let isRemembered = error.message.contains("The failure is remembered")
        return "\(event ?? error.message[...])\(isRemembered ? " The failure is remembered." : "") "
            + "For this server: \(setting)."
    }

    private func errorAnswer(
        _ status: Int,
        _ text: String,
        _ note: AnswerNote,
        wait: String? = nil
    ) -> ServerAnswer {
        let isAboutSource = status == 404 || status == 410 || status == 422
        let seconds = self.configuration.caching.errorLifetime.components.seconds
        var fields: HeaderFields = [
            "Cache-Control": isAboutSource && seconds > 0 ? "max-age=\(seconds), public" : "no-store",
            "X-Content-Type-Options": "nosniff",
        ]
        if status == 429 || status == 503 { fields.append(wait ?? "\(Self.retrySeconds)", for: "Retry-After") }
        if let origin = self.configuration.allowedOrigin { fields.append(origin, for: "Access-Control-Allow-Origin") }
        // A client that accepts another format may get an image.
        if self.configuration.images.readsAccept { fields.append("Accept", for: "Vary") }
        return .text(status, text + "\n", fields: fields, note: note)
    }
}

extension RequestHead {
    /// Whether the request has a condition or selects a part.
    fileprivate var mayBeConditional: Bool {
        self["If-None-Match"] != nil || self["If-Modified-Since"] != nil || self["Range"] != nil
            || self["If-Match"] != nil || self["If-Unmodified-Since"] != nil
    }
}
