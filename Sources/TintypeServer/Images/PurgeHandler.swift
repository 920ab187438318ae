// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeHTTP

/// Answers requests to purge sources and the images made from them.
struct PurgeHandler: Sendable {
    /// The token that a purge must have; `nil` permits no purges.
    let secret: String?
    let answers: ImageAnswers
    let purges: PurgeList
    let loader: LoaderActor
    /// Removes the planned routes, so that later requests get new cache keys.
    let forgetRoutes: @Sendable () -> Void

    /// Whether a path is `/purge`, and the server has a secret for it.
    func takesPost(_ path: String) -> Bool { path == "/purge" && self.secret != nil }

    /// Returns the reason why a purge is refused, before its body is received.
    func refusal(of head: RequestHead) -> ServerAnswer? {
        self.secret.map { head.bears($0) } == true ? nil : self.answers.forbidden
    }

    private static func isPurgeable(_ name: Substring) -> Bool {
        let schemes = ["http://", "https://", "local://", "s3://"]
        return schemes.contains { name.hasPrefix($0) } && !name.contains("*") && !name.contains("#")
            && FieldText.isPlain(String(name))
    }

    /// Purges the sources and the prefixes that the body names.
    func answer(to request: ServerRequest) async -> ServerAnswer {
        if let refusal = self.refusal(of: request.head) { return refusal }
        let text = String(decoding: request.body, as: UTF8.self)
        let lines = text.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1) }
        guard !lines.isEmpty,
            lines.allSatisfy({
                $0.count == 2 && ($0[0] == "source" || $0[0] == "prefix") && Self.isPurgeable($0[1])
            })
        else {
            return self.answers.refusal(
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
                    // Remove the bytes of web sources at once. No look-up uses the old keys of other entries again.
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
            return self.answers.refusal(500, "The purge could not be stored.")
        }
    }
}
