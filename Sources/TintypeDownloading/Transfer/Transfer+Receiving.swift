import FoundationEssentials
import TintypeHTTP

// What libcurl hands over.

extension Transfer {
    /// The bytes that are read and thrown away of a body that nobody wants, so that the
    /// connection can be used again.
    private static let discardLimit: Int64 = 32 << 10

    /// What a line counts for beside its bytes (RFC 9113, 6.5.2): many short ones cost more than a few long ones.
    private static let lineOverhead = 32

    /// Takes one line of a head: the status line, a field, or the empty line after the last.
    func receive(headerLine bytes: UnsafeRawBufferPointer) -> Verdict {
        self.lastProgress = .now
        let line = HeaderLine(bytes, after: self.responseHeaders.last?.name)
        // Informational responses and trailers count in: there is no end to them otherwise.
        self.headerBytes += bytes.count + Self.lineOverhead
        guard self.headerBytes <= self.limits.maximumHeaderSize else {
            let limit = self.limits.maximumHeaderSize
            return self.abort(.invalidResponse("its header has more than \(limit) bytes", at: self.address))
        }
        // It continues no field (RFC 9112, 2.2), and some would take it for one.
        if self.responseHeaders.isEmpty, bytes.first == UInt8(ascii: " ") || bytes.first == UInt8(ascii: "\t") {
            return self.abort(.invalidResponse("its first field begins with white space", at: self.address))
        }
        // After the head only trailers come, which nobody asked for; or the answer to the second request
        // that a challenge takes.
        if self.hasHead {
            guard case .status = line, self.isChallenged else { return .proceed }
            self.resetResponse()
        }
        switch line {
        case .status(let status):
            self.resetResponse()
            self.status = status
            self.isMultiplexed = !bytes.starts(with: "HTTP/1".utf8)
        case .field(let name, let value):
            self.noteField(name)
            self.responseHeaders.append(value, for: name)
        case .continuation(let value): self.responseHeaders.fold(value)
        case .end: return self.receiveEndOfHead()
        case .malformed: break
        }
        return .proceed
    }

    /// Takes bytes of the body.
    ///
    /// - Parameters:
    ///   - bytes: The bytes as they came.
    ///   - mayDecode: Is told how many bytes were decoded, those between two codings included; returns false where others must have a turn first.
    /// - Returns: What libcurl is to do next.
    func receive(body bytes: UnsafeRawBufferPointer, mayDecode: (Int) -> Bool) -> Verdict {
        self.lastProgress = .now
        guard self.isSuccess else {
            self.discardedBytes += Int64(bytes.count)
            return self.discardedBytes > Self.discardLimit ? .abort : .proceed
        }
        guard let decoder else { return self.take(bytes) }
        do throws(ContentDecoder.Failure) {
            return try decoder.decode(bytes, mayGoOn: mayDecode) { mayDecode($0.count) ? self.take($0) : .pause }
        } catch {
            return self.abort(self.undecodable(error))
        }
    }

    /// Takes bytes of the representation.
    private func take(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        if let channel { return self.stream(bytes, into: channel) }
        if let resumption, bytes.count > resumption.total - self.body.count { return self.abortResumption() }
        let room = self.claimRoom(for: bytes.count)
        guard case .proceed = room else { return room }
        switch self.body.append(bytes) {
        case .appended: break
        case .overLimit: return self.abort(self.bodyTooLarge(declared: nil))
        case .outOfMemory: return self.abort(.outOfMemory(at: self.address))
        }
        self.noteNews()
        return .proceed
    }

    private func stream(_ bytes: UnsafeRawBufferPointer, into channel: BodyChannel) -> Verdict {
        guard self.streamedBytes + Int64(bytes.count) <= Int64(self.limits.maximumBodySize) else {
            return self.abort(self.bodyTooLarge(declared: nil))
        }
        // libcurl hands the same bytes over again when the transfer goes on.
        guard bytes.isEmpty || channel.offer(bytes) else {
            self.isPaused = true
            return .pause
        }
        self.streamedBytes += Int64(bytes.count)
        return .proceed
    }

    private func receiveEndOfHead() -> Verdict {
        guard let status, status >= 200 else { return .proceed }
        self.hasHead = true
        self.codings = ContentCodings(self.responseHeaders)
        self.responseTime = Date()
        self.onHead?(self)
        let declared: Int64?
        switch DeclaredLength(self.responseHeaders) {
        case .none: declared = nil
        case .bytes(let count): declared = count
        case .invalid: return self.abort(.invalidResponse("its Content-Length is no number", at: self.address))
        }
        self.speedWindow = (.now, 0)
        self.hasWatchedFraming =
            self.request.method == .head || declared == 0 || status == 204 || status == 304
            || declared == nil && self.responseHeaders["Transfer-Encoding"] != nil
        guard self.isSuccess else {
            return declared ?? 0 > Self.discardLimit && !self.answersChallenges ? .abort : .proceed
        }
        // libcurl would undo it, and take one that breaks off for whole.
        guard !self.hasTransferCoding else {
            return self.abort(.invalidResponse("it has a transfer coding that was not asked for", at: self.address))
        }
        // A part that nobody asked for must not pass for the whole.
        if status == 206, !self.asksForRest, self.requestHeaders["Range"] == nil {
            return self.abort(.invalidResponse("it sent a part of the body unasked", at: self.address))
        }
        guard self.applyResumption(status: status) else { return .abort }
        guard self.limits.accepts(contentType: self.responseHeaders["Content-Type"]) || status == 304 else {
            return self.abort(.unacceptableContentType(of: self))
        }
        if case .known(let codings) = self.codings {
            do throws(ContentDecoder.Failure) {
                self.decoder = try ContentDecoder(codings, limit: self.limits.maximumBodySize)
            } catch {
                return self.abort(self.undecodable(error))
            }
        }
        return self.expect(declared)
    }

    /// Looks at the declared length before anything comes.
    private func expect(_ declared: Int64?) -> Verdict {
        let hasBody = self.request.method != .head && self.status != 304
        if hasBody, let declared {
            let (total, overflow) = declared.addingReportingOverflow(Int64(self.body.count))
            if let resumption, overflow || total > Int64(resumption.total) { return self.abortResumption() }
            guard !overflow, total <= Int64(self.limits.maximumBodySize) else {
                return self.abort(self.bodyTooLarge(declared: overflow ? declared : total))
            }
            if self.isIdentity { self.expectedBytes = self.resumption.map { Int64($0.total) } ?? total }
            if self.channel == nil { self.body.reserve(declared: Int(total)) }
        }
        if let channel {
            channel.receive(
                ResponseHead(
                    status: self.status ?? 0,
                    headers: self.responseHeaders,
                    url: self.finalURL,
                    expectedBytes: self.expectedBytes
                )
            )
        } else {
            // What an earlier try left belongs to the picture for sure by now.
            self.announce()
        }
        return .proceed
    }

    /// Whether the bytes of the body are those of the representation.
    var isIdentity: Bool { self.codings == .identity }

    /// Whether the body has a transfer coding besides the chunked one, which everything must understand.
    private var hasTransferCoding: Bool {
        self.responseHeaders.values(for: "Transfer-Encoding").contains { value in
            value.lowercased().split { ", \t".contains($0) }.contains { $0 != "chunked" && $0 != "identity" }
        }
    }

    private func undecodable(_ failure: ContentDecoder.Failure) -> DownloadError {
        switch failure {
        case .corrupt: .invalidResponse("its body is not coded as its Content-Encoding says", at: self.address)
        case .tooLarge: self.bodyTooLarge(declared: nil)
        case .outOfMemory: .outOfMemory(at: self.address)
        }
    }

    /// Whether libcurl answers a challenge with a second request of its own.
    private var isChallenged: Bool {
        self.answersChallenges && (self.status == 401 || self.status == 407) && self.receivedBytes == 0
    }

    private var answersChallenges: Bool {
        if case .digest = self.options?.credentials?.value { return true }
        return self.usesDigestProxy
    }

    /// Ends the request, so that everything is asked for: the rest would be more than the whole leaves.
    private func abortResumption() -> Verdict {
        self.mustRestart = true
        return .abort
    }

    func abort(_ failure: DownloadError) -> Verdict {
        self.failure = failure
        return .abort
    }

    private func bodyTooLarge(declared: Int64?) -> DownloadError {
        .bodyTooLarge(
            limit: self.limits.maximumBodySize,
            declared: declared,
            status: self.status,
            headers: self.responseHeaders,
            at: self.address
        )
    }
}
