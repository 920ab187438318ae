// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP
import TintypeImgproxy

/// Answers requests for the page to try the server, and the requests of that page.
struct PageHandler: Sendable {
    let configuration: ImageServer.Configuration
    let answers: ImageAnswers
    let uploads: UploadStore
    /// The signer with the current keys; `nil` if there are no keys.
    let signer: URLSigner?

    /// The answer at `/` of a server without a page.
    static let name = ServerAnswer.text(200, "tintype\n", fields: ["Cache-Control": "no-cache"])

    /// Whether the page sends a POST to this path.
    static func takesPost(_ path: String) -> Bool { path == "/upload" || path == "/sign" }

    /// Whether `Host` is a name of this server.
    ///
    /// A site could let its own name resolve to this machine, and use the page to sign URLs.
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

    /// Returns the page, or the image that its form describes.
    func answer(to head: RequestHead) -> ServerAnswer {
        guard self.isOwnHost(head) else { return Self.name }
        // A link or an image on another site must not get its URL signed.
        if head.target.contains("?"), self.isOwnPage(head), let path = PageForm.path(of: head.target) {
            var answer = AnswerHead(status: 303)
            answer.fields.append(self.signed(path), for: "Location")
            answer.fields.append(0, for: "Content-Length")
            answer.fields.append("no-store", for: "Cache-Control")
            return ServerAnswer(answer)
        }
        return .text(
            200,
            PageContents.html,
            type: "text/html; charset=utf-8",
            fields: [
                "Cache-Control": "no-cache", "ETag": PageContents.entityTag,
                "Content-Security-Policy": PageContents.contentSecurityPolicy, "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
            ]
        )
    }

    /// Returns a path with its signature, or with `unsafe` instead of one if the server has no keys.
    private func signed(_ path: String) -> String {
        self.signer?.sign(path) ?? "/unsafe\(path)"
    }

    /// Returns the reason why a POST is refused, before its body is received.
    func refusal(ofPost head: RequestHead) -> ServerAnswer? {
        guard self.isOwnPage(head) else { return self.answers.refusal(403, "Only the server's own page may do this.") }
        // A form of another site cannot send these types without a preflight request.
        let type = head["Content-Type"] ?? ""
        guard head.path != "/upload" || type.hasPrefix("image/") || type == "application/octet-stream" else {
            return self.answers.refusal(422, "The body must be an image.")
        }
        return nil
    }

    /// Returns the signed path, or the name of the file that was sent.
    func answer(toPost request: ServerRequest) -> ServerAnswer {
        if let refusal = self.refusal(ofPost: request.head) { return refusal }
        guard request.head.path == "/sign" else {
            let id = self.uploads.add(request.body)
            let text = "{\"source\":\"upload:///\(id)\"}"
            return .text(200, text, type: "application/json", fields: ["Cache-Control": "no-store"])
        }
        let text = String(decoding: request.body, as: UTF8.self)
        guard text.hasPrefix("/"), FieldText.isPlain(text) else {
            return self.answers.refusal(400, "The body must be the path to sign, such as /w:100/plain/https://...")
        }
        return .text(200, self.signed(text), fields: ["Cache-Control": "no-store"])
    }
}
