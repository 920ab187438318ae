// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Synchronization
import Tintype
import TintypeHTTP
import TintypeImgproxy

/// Answers about the server itself: health, metrics, the page, uploads, purges and information about images.
extension ImageHandler {
    /// Whether a target names no image, and its answer takes waiting.
    func needsWaiting(_ target: String) -> Bool {
        // Longer paths are those of images, except for the one that the configuration names.
        let longest = max(64, self.configuration.healthPath?.utf8.count ?? 0)
        return Self.isInformation(target)
            || target.utf8.count <= longest && self.isAboutServer(Self.path(of: target))
    }

    func isAboutServer(_ path: String) -> Bool {
        path == "/health" || path == "/ready" || path == "/metrics" || path == self.configuration.healthPath
    }

    static func path(of target: String) -> String {
        String(Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") }))
    }

    static func isInformation(_ target: String) -> Bool { target.hasPrefix("/info/") }

    /// Returns an answer that takes no waiting, for the addresses that are no images.
    func ownAnswer(to head: RequestHead) -> ServerAnswer? {
        let target = head.target
        // Images have at least two parts.
        guard
            target.utf8.count < 2 || !target.utf8.dropFirst().prefix(64).contains(UInt8(ascii: "/"))
                || target.hasPrefix("/.")
                || target.utf8.dropFirst().first == UInt8(ascii: "?")
        else { return nil }
        let path = Self.path(of: target)
        switch path {
        case "/": return self.pageAnswer(to: head)
        case "/favicon.ico": return self.refusal(404, "There is no icon.")
        case _ where path.hasPrefix("/.well-known"): return self.refusal(404, "There is nothing here.")
        default: return nil
        }
    }

    /// Whether a request brings the secret that the server asks for.
    func isPermitted(_ head: RequestHead) -> Bool {
        self.configuration.secret.map { Self.bears($0, head) } ?? true
    }

    var forbidden: ServerAnswer {
        .text(
            403,
            "Forbidden\n",
            fields: ["Cache-Control": "no-store"],
            note: AnswerNote(errorCode: "403", message: "The request does not bring the secret.")
        )
    }

    private static func bears(_ secret: String, _ head: RequestHead) -> Bool {
        ConstantTime.isEqual((head.onlyValue(for: "Authorization") ?? "").utf8, "Bearer \(secret)".utf8)
    }

    /// Returns the answer to a browser that asks what it may do from another site.
    func optionsAnswer() -> ServerAnswer {
        var head = AnswerHead(status: 204)
        head.fields.append("GET, HEAD, OPTIONS", for: "Allow")
        if let origin = self.configuration.allowedOrigin {
            head.fields.append(origin, for: "Access-Control-Allow-Origin")
            head.fields.append("GET, HEAD, OPTIONS", for: "Access-Control-Allow-Methods")
            head.fields.append("86400", for: "Access-Control-Max-Age")
        }
        return ServerAnswer(head)
    }

    // MARK: Health

    /// Returns whether the process works: false if decode lanes have been stuck for a minute.
    func health() async -> ServerAnswer {
        let statistics = await self.loader.statistics()
        let (encoded, bytes) = (statistics.encoded, statistics.bytes)
        let isAlive = self.liveness.isAlive(
            ended: encoded.finished.values.reduce(0, +) + encoded.failed.values.reduce(0, +) + encoded.refused,
            fed: bytes.finished.values.reduce(0, +) + bytes.hits.values.reduce(0, +),
            active: encoded.active,
            at: .now
        )
        return .text(
            isAlive ? 200 : 503,
            isAlive ? "tintype is running\n" : "No image was finished for a minute, although requests wait.\n",
            fields: ["Cache-Control": "no-cache"]
        )
    }

    /// Returns whether a balancer may send more requests.
    ///
    /// The age of requests says nothing about the server, because some wait for slow origins. The server refuses requests
    /// before work waits for the whole of `queue-time`, so it is not ready after half of it.
    func readiness() async -> ServerAnswer {
        let figures = self.admission.figures(at: .now)
        let wait = self.loader.oldestWait(at: .now)
        let isReady =
            !self.isEnding.load(ordering: .relaxed) && figures.count < figures.limit
            && wait <= self.configuration.load.queueTime / 2
        let name = isReady ? "ready" : "not ready"
        let milliseconds = Int(wait / .milliseconds(1))
        return .text(
            isReady ? 200 : 503,
            "\(name): \(figures.count) of \(figures.limit) requests, longest wait for a lane \(milliseconds) ms\n",
            fields: ["Cache-Control": "no-cache"]
        )
    }

    func metricsAnswer() async -> ServerAnswer {
        let figures = self.admission.figures(at: .now)
        let counters = await self.connections.withLock { $0 }?.counters ?? ConnectionActor.Counters()
        let text = self.metrics.text(
            connections: counters,
            admission: figures,
            loader: await self.loader.statistics()
        )
        let data = Data(text.utf8)
        var head = AnswerHead(status: 200)
        head.fields.append("text/plain; version=0.0.4; charset=utf-8", for: "Content-Type")
        head.fields.append(data.count, for: "Content-Length")
        head.fields.append("no-store", for: "Cache-Control")
        return ServerAnswer(head, body: .data(data))
    }

    // MARK: Information

    /// Returns the size and the format of a source as JSON.
    func informationAnswer(to request: ServerRequest) async -> ServerAnswer {
        let target = String(request.head.target.dropFirst("/info".utf8.count))
        do {
            let planner = self.planner
            let now = Int(Date().timeIntervalSince1970)
            let route: ImageRoute
            do throws(RoutePlanner.Refusal) {
                route = try planner.route(for: target, acceptsWebP: false, now: now, purges: self.purges)
            } catch {
                return self.answer(error)
            }
            let place: Admission.Place
            do throws(Admission.Refusal) {
                place = try self.admission.enter(route.origin, request.client, at: .now)
            } catch {
                return self.answer(error)
            }
            defer { withExtendedLifetime(place) {} }
            var source = route.request
            source.transforms = []
            let (header, bytes) = try await self.header(of: source)
            let response = if let bytes { bytes } else { try await self.loader.dataResponse(for: source) }
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            let data = try encoder.encode(ImageInformation(header, byteCount: response.data.count))
            var head = AnswerHead(status: 200)
            head.fields.append("application/json", for: "Content-Type")
            head.fields.append(data.count, for: "Content-Length")
            head.fields.append("max-age=60, public", for: "Cache-Control")
            Self.addSecurity(to: &head.fields)
            return ServerAnswer(head, body: .data(data))
        } catch is CancellationError {
            return self.refusal(503, "The request was cancelled.")
        } catch let error as LoadError {
            return self.answer(error)
        } catch {
            return self.refusal(500, "The image could not be read.")
        }
    }

    // MARK: Page

    /// Whether a POST goes to an address that takes one.
    func isPost(_ head: RequestHead) -> Bool {
        switch Self.path(of: head.target) {
        case "/upload", "/sign": self.uploads != nil
        case "/purge": self.configuration.purgeSecret != nil
        default: false
        }
    }

    /// Whether a request names the server by a name of its own: a name that another site made lead here could use the page
    /// to sign URLs.
    private func isOwnHost(_ head: RequestHead) -> Bool {
        !self.configuration.listensOnLoopback || AllowedHosts(self.configuration.hosts).contains(head.host)
    }

    /// Whether a request comes from the server's own page, or from no page.
    private func isOwnPage(_ head: RequestHead) -> Bool {
        let site = head["Sec-Fetch-Site"]
        let origin = head["Origin"]
        return self.isOwnHost(head) && (site == nil || site == "same-origin" || site == "none")
            && (origin == nil || origin?.hasSuffix("://\(head.host ?? "")") == true)
    }

    private func pageAnswer(to head: RequestHead) -> ServerAnswer {
        guard self.uploads != nil, self.isOwnHost(head) else {
            return .text(200, "tintype\n", fields: ["Cache-Control": "no-cache"])
        }
        // Another site must not have its URLs signed by a link or an image.
        if head.target.contains("?"), self.isOwnPage(head), let path = PageForm.path(of: head.target) {
            var answer = AnswerHead(status: 303)
            answer.fields.append(self.signed(path), for: "Location")
            answer.fields.append(0, for: "Content-Length")
            answer.fields.append("no-store", for: "Cache-Control")
            return ServerAnswer(answer)
        }
        let page = Data(PageContents.html.utf8)
        var answer = AnswerHead(status: 200)
        answer.fields.append("text/html; charset=utf-8", for: "Content-Type")
        answer.fields.append(page.count, for: "Content-Length")
        answer.fields.append("no-cache", for: "Cache-Control")
        answer.fields.append(PageContents.entityTag, for: "ETag")
        answer.fields.append(PageContents.contentSecurityPolicy, for: "Content-Security-Policy")
        answer.fields.append("nosniff", for: "X-Content-Type-Options")
        answer.fields.append("DENY", for: "X-Frame-Options")
        return ServerAnswer(answer, body: .data(page))
    }

    /// Returns a path with its signature, or with a word in its place if the server has no keys.
    private func signed(_ path: String) -> String {
        self.signer?.sign(path) ?? "/unsafe\(path)"
    }

    /// Returns the reason why a POST is refused, before its body is received.
    func postRefusal(_ head: RequestHead, _ path: String) -> ServerAnswer? {
        guard path != "/purge" else {
            return self.configuration.purgeSecret.map { Self.bears($0, head) } == true ? nil : self.forbidden
        }
        guard self.isOwnPage(head) else { return self.refusal(403, "Only the server's own page may do this.") }
        // A form of another site cannot send these types without asking first.
        let type = head["Content-Type"] ?? ""
        guard path != "/upload" || type.hasPrefix("image/") || type == "application/octet-stream" else {
            return self.refusal(422, "The body must be an image.")
        }
        return nil
    }

    func postAnswer(to request: ServerRequest, _ path: String) async -> ServerAnswer {
        if let refusal = self.postRefusal(request.head, path) { return refusal }
        switch path {
        case "/sign":
            let text = String(decoding: request.body, as: UTF8.self)
            guard text.hasPrefix("/"), FieldText.isPlain(text) else {
                return self.refusal(400, "The body must be the path to sign, such as /w:100/plain/https://...")
            }
            return .text(200, self.signed(text), fields: ["Cache-Control": "no-store"])
        case "/upload":
            guard let uploads else { return self.refusal(404, "The page is off.") }
            let id = uploads.add(request.body)
            let data = Data("{\"source\":\"upload:///\(id)\"}".utf8)
            var head = AnswerHead(status: 200)
            head.fields.append("application/json", for: "Content-Type")
            head.fields.append(data.count, for: "Content-Length")
            head.fields.append("no-store", for: "Cache-Control")
            return ServerAnswer(head, body: .data(data))
        default: return await self.purgeAnswer(to: request)
        }
    }

    // MARK: Purges

    private static func isPurgeable(_ name: Substring) -> Bool {
        let schemes = ["http://", "https://", "local://", "s3://"]
        return schemes.contains { name.hasPrefix($0) } && !name.contains("*") && !name.contains("#")
            && FieldText.isPlain(String(name))
    }

    /// Forgets a source, or all sources whose URLs begin with a text.
    private func purgeAnswer(to request: ServerRequest) async -> ServerAnswer {
        let text = String(decoding: request.body, as: UTF8.self)
        let lines = text.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1) }
        guard !lines.isEmpty,
            lines.allSatisfy({
                $0.count == 2 && ($0[0] == "source" || $0[0] == "prefix") && Self.isPurgeable($0[1])
            })
        else {
            return self.refusal(
                400,
                "Each line of the body must be `source URL` or `prefix URL`, with the URL as the origin receives it, "
                    + "such as https://example.org/a.jpg. A * has no meaning."
            )
        }
        defer { self.forgetRoutes() }
        do {
            for line in lines {
                let name = String(line[1])
                if line[0] == "source" {
                    let old = self.purges.cacheKey(of: name)
                    try self.purges.purge(source: name)
                    // The bytes of web sources go at once. Others, and what was made of them, are never found again.
                    if let url = URL(string: name), url.scheme == "http" || url.scheme == "https" {
                        var source = ImageRequest(url: url)
                        source.source.cacheKey = old
                        _ = try await self.loader.remove(source)
                    }
                } else {
                    try self.purges.purge(prefix: name)
                }
            }
            let note = AnswerNote(message: "purged: \(text.split(separator: "\n").joined(separator: ", "))")
            return .text(200, "purged\n\(text)\n", fields: ["Cache-Control": "no-store"], note: note)
        } catch {
            return self.refusal(500, "The purge could not be stored.")
        }
    }
}

/// The answer of `/info`.
private struct ImageInformation: Encodable {
    let format: String
    let width: Int
    let height: Int
    let orientation: Int
    let frames: Int
    let hasAlpha: Bool
    let bitDepth: Int
    let bytes: Int

    init(_ header: ImageHeader, byteCount: Int) {
        let size = header.uprightSize
        self.format = header.format.name
        self.width = size.width
        self.height = size.height
        self.orientation = Int(header.orientation.rawValue)
        self.frames = header.animation.frameCount
        self.hasAlpha = header.hasAlpha
        self.bitDepth = header.bitDepth
        self.bytes = byteCount
    }
}
