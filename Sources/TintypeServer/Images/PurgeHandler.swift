// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeCluster
import TintypeHTTP

/// Answers requests to purge sources and the images made from them.
struct PurgeHandler: Sendable {
    /// The token that a purge must have; `nil` permits no purges.
    let secret: String?
    let answers: ImageAnswers
    let purges: PurgeList
    let loader: LoaderActor
    /// The servers that share a cache, which all purge what one of them purges.
    let cluster: Cluster?
    /// Removes the planned routes, so that later requests get new cache keys.
    let forgetRoutes: @Sendable () -> Void

    /// Whether a path is `/purge`, and the server has a secret for it.
    func takesPost(_ path: String) -> Bool { path == "/purge" && self.secret != nil }

    /// Returns the reason why a purge is refused, before its body is received.
    func refusal(of head: RequestHead) -> ServerAnswer? {
        self.secret.map { head.bears($0) } == true ? nil : self.answers.forbidden
    }

    private func isPurgeable(_ kind: Substring, _ name: Substring) -> Bool {
        guard FieldText.isPlain(String(name)) else { return false }
        switch kind {
        case "source", "prefix":
            let schemes = ["http://", "https://", "local://", "s3://"]
            return schemes.contains { name.hasPrefix($0) } && !name.contains("*") && !name.contains("#")
        case "tag": return self.cluster != nil
        default: return false
        }
    }

    /// Purges the sources and the prefixes that the body names.
    func answer(to request: ServerRequest) async -> ServerAnswer {
        if let refusal = self.refusal(of: request.head) { return refusal }
        let text = String(decoding: request.body, as: UTF8.self)
        let lines = text.split(separator: "\n").map { $0.split(separator: " ", maxSplits: 1) }
        guard !lines.isEmpty, lines.allSatisfy({ $0.count == 2 && self.isPurgeable($0[0], $0[1]) }) else {
            return self.answers.refusal(
                400,
                "Each line of the body must be `source URL` or `prefix URL`, with the URL as the origin receives it, "
                    + "such as https://example.org/a.jpg. A * has no meaning. Servers that share a cache also take "
                    + "`tag NAME`."
            )
        }
        defer { self.forgetRoutes() }
        do {
            for line in lines { try await self.purge(line[0], String(line[1])) }
            let note = AnswerNote(message: "purged: \(text.split(separator: "\n").joined(separator: ", "))")
            return .text(200, "purged\n\(text)\n", fields: ["Cache-Control": "no-store"], note: note)
        } catch {
            return self.answers.refusal(self.cluster == nil ? 500 : 503, "The purge could not be stored. Try it again.")
        }
    }

    private func purge(_ kind: Substring, _ name: String) async throws {
        if kind == "tag" {
            _ = try await self.cluster?.purge(tag: name)
            return
        }
        let old = self.purges.cacheKey(of: name)
        let line = "\(kind) \(name)"
        let identifier = try await self.cluster?.announce(purge: line)
        try self.purges.purge(line, at: identifier.flatMap { PurgeList.Moment($0) })
        // Remove the bytes of web sources at once. No look-up uses the old keys of other entries again.
        guard kind == "source", let url = URL(string: name), url.scheme == "http" || url.scheme == "https" else {
            return
        }
        var source = ImageRequest(url: url)
        source.source.cacheKey = old
        _ = try await self.loader.remove(source)
    }
}
