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
    /// The servers that share a cache; a purge on one of them applies to all.
    let cluster: Cluster?
    let routes: RouteTable

    func takesPost(_ path: String) -> Bool { path == "/purge" }

    /// Returns the reason why a purge is refused, before its body is received.
    func refusal(of head: RequestHead) -> ServerAnswer? {
        guard let secret else {
            return self.answers.refusal(403, "This server takes no purges: it has no --purge-secret.")
        }
        return head.bears(secret) ? nil : self.answers.forbidden
    }

    /// The fault of a body, in a full sentence.
    private struct BodyError: Error {
        let message: String
    }

    /// A line of a body.
    private struct Line {
        let kind: String
        let name: String
        var text: String { "\(self.kind) \(self.name)" }
    }

    /// Returns the lines of a body, which may end with CRLF; empty lines do not count.
    ///
    /// - Throws: ``BodyError`` about the first wrong line.
    private func lines(of body: Data) throws(BodyError) -> [Line] {
        var lines: [Line] = []
        for (index, bytes) in body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let text = String(decoding: bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes, as: UTF8.self)
            guard !text.isEmpty else { continue }
            let parts = text.split(separator: " ", maxSplits: 1).map { String($0) }
            let line = Line(kind: parts.first ?? "", name: parts.count > 1 ? parts[1] : "")
            if let fault = self.fault(of: line) { throw BodyError(message: "Line \(index + 1): \(fault).") }
            lines.append(line)
        }
        guard !lines.isEmpty else {
            throw BodyError(message: "The body is empty; each line must be `source URL` or `prefix URL`.")
        }
        return lines
    }

    /// Returns what is wrong with a line, or `nil`.
    private func fault(of line: Line) -> String? {
        let schemes = ["http://", "https://", "local://", "s3://"]
        switch line.kind {
        case "tag" where self.cluster == nil: return "only servers with --shared take a tag"
        case "source", "prefix", "tag": break
        default: return "a line must be `source URL` or `prefix URL`, or `tag NAME` for servers with --shared"
        }
        guard !line.name.isEmpty else { return "there is nothing after \(line.kind)" }
        guard FieldText.isPlain(line.name) else { return "there is a control character" }
        guard line.kind != "tag" else {
            if line.name.utf8.count > Cluster.longestTag { return "a tag has at most \(Cluster.longestTag) bytes" }
            return line.name.contains(" ") ? "a tag has no space; write one tag in a line" : nil
        }
        guard schemes.contains(where: { line.name.hasPrefix($0) }) else {
            return "the URL must begin with \(schemes.joined(separator: ", ")), as the origin receives it"
        }
        if line.name.contains("*") { return "a * has no meaning; `prefix URL` purges all URLs that begin with it" }
        return line.name.contains("#") ? "the URL has a fragment, which no origin receives" : nil
    }

    /// Purges the sources and the prefixes that the body names.
    func answer(to request: ServerRequest) async -> ServerAnswer {
        if let refusal = self.refusal(of: request.head) { return refusal }
        let lines: [Line]
        do {
            lines = try self.lines(of: request.body)
        } catch {
            return self.answers.refusal(400, error.message)
        }
        // Later requests need routes with new cache keys.
        defer { self.routes.removeAll() }
        do {
            var texts: [String] = []
            for line in lines { texts.append(try await self.purge(line)) }
            let note = AnswerNote(message: "purged: \(texts.joined(separator: ", "))")
            let text = "purged\n\(texts.joined(separator: "\n"))\n"
            return .text(200, text, fields: ["Cache-Control": "no-store"], note: note)
        } catch {
            // Only those who know the secret see the reason.
            let reason = (error as? any TintypeError)?.message ?? "\(error)"
            let end = reason.hasSuffix(".") ? "" : "."
            let status = self.cluster == nil ? 500 : 503
            return self.answers.refusal(
                status,
                "The purge is not complete. \(reason)\(end) Remove the cause, and send it again."
            )
        }
    }

    /// Purges the sources of a line, and returns its text for the answer, with the number of sources that had a tag.
    private func purge(_ line: Line) async throws -> String {
        if line.kind == "tag" {
            let count = try await self.cluster?.purge(tag: line.name) ?? 0
            return "\(line.text) (sources: \(count))"
        }
        let old = self.purges.cacheKey(of: line.name)
        let identifier = try await self.cluster?.announce(purge: line.text)
        let moment = identifier.flatMap { PurgeList.Moment($0) }
        guard moment != nil || identifier == nil else {
            throw CacheError(code: .tierFailed, message: "Redis has given the purge no identifier that is a time.")
        }
        if let moment, moment > .latest {
            throw CacheError(
                code: .tierFailed,
                message: "The clock of Redis is a day ahead of the clock of this server, so no server purges; "
                    + "set the clocks."
            )
        }
        try self.purges.purge(line.text, at: moment)
        // Remove the bytes of web sources at once. Other entries stay until they are evicted: no look-up uses their old
        // keys again.
        guard line.kind == "source", let url = URL(string: line.name), url.scheme == "http" || url.scheme == "https"
        else {
            return line.text
        }
        var source = ImageRequest(url: url)
        source.source.cacheKey = old
        _ = try await self.loader.remove(source)
        return line.text
    }
}
