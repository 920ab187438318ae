import CCurl
import FoundationEssentials
import TintypeHTTP

// What a finished request means.

extension Transfer {
    /// The address to go on with, or `nil` when the response is no redirect.
    func redirectTarget(limit: Int) throws(DownloadError) -> ResourceAddress? {
        guard self.failure == nil, self.hasHead, let status, [301, 302, 303, 307, 308].contains(status),
            !self.isSuccess, let location = self.responseHeaders["Location"], !location.isEmpty
        else { return nil }
        guard self.metrics.redirectCount < limit else { throw .tooManyRedirects(limit: limit, at: self.address) }
        guard let text = Redirect.resolve(location, from: self.address) else {
            throw .invalidResponse("its Location is no URL", at: self.address)
        }
        guard let target = try? ResourceAddress(text), target.scheme == .http || target.scheme == .https else {
            throw .unsafeRedirect(to: text, at: self.address)
        }
        try self.networkPolicy.check(target)
        return target
    }

    /// The response, once libcurl reported `code` for the request.
    func makeResponse(code: CURLcode, details: String) throws(DownloadError) -> DownloadResponse {
        if let failure { throw failure }
        if self.hasHead, let status, !self.isSuccess {
            throw .badStatus(status, headers: self.responseHeaders, at: self.address)
        }
        if code != CURLE_OK, let denial = self.connections.denial { throw .addressNotAllowed(denial, at: self.address) }
        guard code == CURLE_OK else {
            let refusal = self.connections.socketRefusal
            if let error = DownloadError.shortage(code, details: details, socketRefusal: refusal, at: self.address) {
                throw error
            }
            // libcurl gives up on a header line of 100 kB with the words for missing memory.
            guard self.hasHead || code != CURLE_OUT_OF_MEMORY else {
                throw .invalidResponse("a line of its header is too long", at: self.address)
            }
            // It also has other words for a first field that begins with white space than our own.
            guard self.hasHead || self.status == nil || code != CURLE_BAD_FUNCTION_ARGUMENT else {
                throw .invalidResponse("a line of its header is no field", at: self.address)
            }
            throw .transferFailed(
                code,
                details: details,
                status: self.status,
                headers: self.responseHeaders,
                hasHead: self.hasHead,
                at: self.address
            )
        }
        guard self.hasHead, let status else {
            throw .transferFailed(
                CURLE_GOT_NOTHING,
                details: "it ended inside the header",
                status: nil,
                headers: [:],
                hasHead: false,
                at: self.address
            )
        }
        if let decoder, decoder.hasStarted, !decoder.isComplete { throw .cutShort(self) }
        guard self.receivedBytes > 0 || self.mayBeEmpty(status) else {
            throw .emptyBody(status: status, headers: self.responseHeaders, at: self.address)
        }
        if let resumption, self.receivedBytes != resumption.total {
            throw .cutShort(received: self.receivedBytes, expected: resumption.total, of: self)
        }
        return DownloadResponse(
            body: self.takeBody(),
            // With the bytes that were here it is the whole again (RFC 9110, 15.3.7.3).
            status: self.resumption == nil ? status : 200,
            headers: self.responseHeaders,
            url: self.finalURL,
            metrics: self.metrics,
            requestTime: self.requestTime,
            responseTime: self.responseTime,
            claim: self.claim
        )
    }

    /// Judges a response that hooks have changed as if it had come so.
    func judge(_ response: DownloadResponse) throws(DownloadError) {
        guard let status = response.status else {
            throw .invalidResponse("a hook has taken its status away", at: self.address)
        }
        guard self.limits.acceptableStatusCodes.contains(status) else {
            throw .badStatus(status, headers: response.headers, at: self.address)
        }
        guard !response.body.isEmpty || self.mayBeEmpty(status) else {
            throw .emptyBody(status: status, headers: response.headers, at: self.address)
        }
    }

    /// Whether the response may have no body; 304 and its like have none.
    private func mayBeEmpty(_ status: Int) -> Bool {
        self.request.method == .head || !(200..<300 ~= status)
    }

    /// Where the body comes from.
    var finalURL: URL {
        guard self.metrics.redirectCount > 0 else { return self.request.url }
        // libcurl has written the target, and is stricter than `URL`.
        return URL(string: self.address.text) ?? self.request.url
    }
}
