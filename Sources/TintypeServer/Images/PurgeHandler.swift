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
            return self.answers.refusal(403, "This server does not accept purges: it has no --purge-secret.")
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

    /// Returns the fault of a line, or `nil`.
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
            let texts = try await self.purge(lines)
            let note = AnswerNote(message: "purged: \(texts.joined(separator: ", "))")
            let text = "purged\n\(texts.joined(separator: "\n"))\n"
            return .text(200, text, fields: ["Cache-Control": "no-store"], note: note)
        } catch {
            // Only clients that know the secret see the reason.
            let reason = (error as? any TintypeError)?.message ?? "\(error)"
            let end = reason.hasSuffix(".") ? "" : "."
            let status = self.cluster == nil ? 500 : 503
            return self.answers.refusal(
                status,
                "The purge is not complete. \(reason)\(end) Remove the cause, and send it again."
            )
        }
    }

    /// Purges the sources of all lines, and returns the texts of the lines for the answer.
    ///
    /// If a line fails, purges the lines before it, and then throws the error of that line.
    private func purge(_ lines: [Line]) async throws -> [String] {
        var texts: [String] = []
        var announced: [(line: Line, moment: PurgeList.Moment?)] = []
        var failure: (any Error)?
        for line in lines {
            do {
                if line.kind == "tag" {
                    let count = try await self.cluster?.purge(tag: line.name) ?? 0
                    texts.append("\(line.text) (sources: \(count))")
                } else {
                    announced.append((line, try await self.announce(line)))
                    texts.append(line.text)
                }
            } catch {
                failure = error
                break
            }
        }
        let oldKeys = announced.map { self.purges.cacheKey(of: $0.line.name) }
        // The list writes its file once for all lines.
        try self.purges.purge(announced.map { ($0.line.text, $0.moment) })
        for ((line, _), old) in zip(announced, oldKeys) where line.kind == "source" {
            // Remove the bytes of web sources at once. Other entries can stay until the cache evicts them, because no
            // look-up uses their old keys again.
            guard let url = URL(string: line.name), url.scheme == "http" || url.scheme == "https" else { continue }
            var source = ImageRequest(url: url)
            source.source.cacheKey = old
            _ = try await self.loader.remove(source)
        }
        if let failure { throw failure }
        return texts
    }

    /// Announces a purge to the other servers, and returns its moment in the cluster, or `nil` without a cluster.
    private func announce(_ line: Line) async throws -> PurgeList.Moment? {
        guard let identifier = try await self.cluster?.announce(purge: line.text) else { return nil }
        guard let moment = PurgeList.Moment(identifier) else {
            throw CacheError(code: .tierFailed, message: "Redis has given the purge no identifier that is a time.")
        }
        if moment > .latest {
            throw CacheError(
                code: .tierFailed,
                message: "The clock of Redis is a day ahead of the clock of this server, so no server purges; "
                    + "set the clocks."
            )
        }
        return moment
    }
}
