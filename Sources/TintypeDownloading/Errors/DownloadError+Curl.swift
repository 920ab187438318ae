// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl

extension DownloadError {
    /// The report of libcurl about a failed transfer.
    public struct CurlError: Error, Sendable, Hashable, CustomStringConvertible {
        /// The `CURLcode`.
        public let code: Int
        /// libcurl's text for the code, with details if it has any.
        public let message: String

        init(code: CURLcode, details: String) {
            self.code = Int(code.rawValue)
            let meaning = String(cString: curl_easy_strerror(code))
            self.message = details.isEmpty ? meaning : details
        }

        public var description: String { "libcurl error \(self.code): \(self.message)" }
    }
}

extension DownloadError {
    /// Returns the error for the `CURLcode` of a transfer.
    static func transferFailed(_ code: CURLcode, details: String, of response: ResponseState) -> DownloadError {
        let address = response.address
        let underlyingError = CurlError(code: code, details: details)
        // libcurl says "receive error" for a body that breaks the chunked coding; only its words tell.
        let isBadlyChunked = code != CURLE_PARTIAL_FILE && details.contains("chunked-encod")
        // OpenSSL's words for the end of a connection without a close alert, or libcurl's for that it could send none.
        let isCutShort =
            code == CURLE_RECV_ERROR && response.hasHead && address.scheme == .https
            && (details.contains("unexpected eof") || details.hasPrefix("Send failure"))
        let code = isBadlyChunked ? CURLE_WEIRD_SERVER_REPLY : code
        let (kind, message) =
            isCutShort
            ? (
                .bodyCutShort,
                "The body of \(shown(address)) ended without a close alert, and may not be whole: "
                    + "\(underlyingError.message). Ask again."
            ) : Self.explanation(of: code, message: underlyingError.message, at: address)
        return DownloadError(
            code: kind,
            message: message,
            url: url(address),
            status: response.status,
            headers: response.headers,
            underlyingError: underlyingError
        )
    }

    /// The error of a request that libcurl ended with `code`.
    static func failed(
        _ code: CURLcode,
        details: String,
        _ connections: ConnectionCheck,
        of response: ResponseState
    ) -> DownloadError {
        let address = response.address
        if let denial = connections.denial { return .addressNotAllowed(denial, at: address) }
        if connections.tunnelStatus >= 300, !response.hasHead {
            return .tunnelRefused(status: connections.tunnelStatus, at: address)
        }
        let refusal = connections.socketRefusal
        if let error = Self.shortage(code, details: details, socketRefusal: refusal, at: address) { return error }
        // libcurl gives up on a header line of 100 kB with the words for missing memory.
        guard response.hasHead || code != CURLE_OUT_OF_MEMORY else {
            return .invalidResponse("a line of its header is too long", at: address)
        }
        // It also has other words for a first field that begins with white space than our own.
        guard response.hasHead || response.status == nil || code != CURLE_BAD_FUNCTION_ARGUMENT else {
            return .invalidResponse("a line of its header is not a field", at: address)
        }
        return .transferFailed(code, details: details, of: response)
    }

    private static func explanation(
        of code: CURLcode,
        message: String,
        at address: ResourceAddress
    ) -> (Code, String) {
        let host = address.host
        let resource = shown(address)
        switch code {
        case CURLE_URL_MALFORMAT:
            return (.invalidURL, "The URL \(resource) cannot be requested: \(message). Correct the URL.")
        case CURLE_COULDNT_RESOLVE_PROXY:
            return (.hostNotFound, "The proxy has no address: \(message). Check its URL and the name servers.")
        case CURLE_PROXY:
            return (
                .cannotConnect,
                "The proxy did not connect to \(host): \(message). Check its rules, and the host and port."
            )
        case CURLE_COULDNT_RESOLVE_HOST:
            return (.hostNotFound, "The host \(host) has no address: \(message). Check its name and the name servers.")
        case CURLE_COULDNT_CONNECT:
            return (
                .cannotConnect, "\(host) does not accept connections: \(message). Check the host, port and network."
            )
        case CURLE_OPERATION_TIMEDOUT:
            return (
                .timedOut,
                "Connecting to \(host) took too long: \(message). Ask again later, or raise the timeout of connecting."
            )
        case CURLE_PARTIAL_FILE:
            return (.bodyCutShort, "The body of \(resource) ended before its declared length: \(message). Ask again.")
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM:
            return (.connectionLost, "The connection to \(host) broke during \(resource): \(message). Ask again.")
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
            return (
                .invalidResponse,
                "\(host) did not answer \(resource) with valid HTTP: \(message). Check that a web server listens there."
            )
        case CURLE_WRITE_ERROR:
            // libcurl takes a 101 that nobody requested for the final response, and its bytes are refused.
            return (
                .invalidResponse,
                "\(host) answered \(resource) with another protocol. Check that a web server listens there."
            )
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_ENGINE_NOTFOUND, CURLE_USE_SSL_FAILED:
            // OpenSSL's words for an answer that is no TLS.
            let isPlain = ["wrong version number", "http request", "packet length too long"].contains {
                message.contains($0)
            }
            let advice =
                isPlain
                ? "Does the port speak TLS? If it does not, use http." : "Check its certificate and the clock."
            return (.tlsFailed, "\(host) cannot be reached safely: \(message). \(advice)")
        case CURLE_OUT_OF_MEMORY:
            return (.outOfMemory, Self.outOfMemory(at: address).message)
        default:
            return (.unexpected, "The transfer of \(resource) failed: \(message).")
        }
    }
}
