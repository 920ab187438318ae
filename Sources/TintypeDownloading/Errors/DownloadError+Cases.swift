// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

// Each error of the module is written once, here, so that all messages speak alike: what
// happened to which resource, then what to do.

extension DownloadError {
    static func relativeURL(_ text: String) -> DownloadError {
        DownloadError(
            code: .invalidURL,
            message: "The URL \(shortened(text)) has no scheme; give a whole URL such as https://example.org/a.jpg."
        )
    }

    static func urlWithoutHost() -> DownloadError {
        DownloadError(
            code: .invalidURL,
            message: "The URL names no host; give a whole URL such as https://example.org/a.jpg."
        )
    }

    static func invalidDataURL(_ reason: String) -> DownloadError {
        DownloadError(
            code: .invalidURL,
            message: "The data URL \(reason); write it as data:image/png;base64,... instead."
        )
    }

    static func unsupportedScheme(_ name: String) -> DownloadError {
        DownloadError(
            code: .unsupportedScheme,
            message: "URLs with the scheme \(shortened(name)) are not supported; use http, https, file or data."
        )
    }

    static func invalidHeader(_ name: String) -> DownloadError {
        DownloadError(
            code: .invalidHeader,
            message: "The request header \(shortened(String(name.prefix { !$0.isNewline }))) cannot be sent; "
                + "its name must be a token and its value one line."
        )
    }

    static func connectionHeader(_ name: String) -> DownloadError {
        DownloadError(
            code: .invalidHeader,
            message: "The request header \(name) cannot be sent: it is about the connection, which the downloader "
                + "keeps for other requests. Leave it out."
        )
    }

    /// Does not show the value, which may be secret.
    static func notSendable(_ what: String) -> DownloadError {
        DownloadError(
            code: .invalidHeader,
            message: "The \(what) cannot be sent: a character in it would break the request. "
                + "Leave out control characters, and colons in the name of a user."
        )
    }

    static func cannotSign() -> DownloadError {
        DownloadError(
            code: .unexpected,
            message: "libcurl cannot sign requests for S3 before version 7.88; use a newer one, such as Debian 12 has."
        )
    }

    static func urlWithControlCharacters() -> DownloadError {
        DownloadError(
            code: .invalidURL,
            message: "The URL, or the user or password in it, has a control character; leave it out, or encode it "
                + "where it belongs to a path or a query."
        )
    }

    /// The text may hold a password, and so is not shown.
    static func noProxy() -> DownloadError {
        DownloadError(
            code: .invalidURL,
            message: "The proxy setting names no proxy; write a whole URL such as http://proxy.example.org:3128, "
                + "or set no proxy to connect directly."
        )
    }

    static func outOfMemoryForHeaders() -> DownloadError {
        DownloadError(
            code: .unexpected,
            message: "There is no memory for the fields of a request; do less at once."
        )
    }

    // MARK: Responses

    static func badStatus(_ status: Int, headers: HeaderFields, at address: ResourceAddress) -> DownloadError {
        let advice =
            switch status {
            case 304: "use the copy that the request named; if it named none, tell the server's operator"
            case 401, 403: "check the credentials in the request"
            case 407: "check the credentials for the proxy"
            case 404, 410: "check the path of the URL"
            case 429, 503: "ask less often, or again later"
            case 500...: "ask again later, or tell the server's operator"
            default: "check the request"
            }
        return DownloadError(
            code: .badStatus,
            message: "\(address.host) answered \(shown(address)) with status \(status); \(advice).",
            url: url(address),
            status: status,
            headers: headers
        )
    }

    static func bodyTooLarge(
        limit: Int,
        declared: Int64?,
        status: Int? = nil,
        headers: HeaderFields = [:],
        at address: ResourceAddress
    ) -> DownloadError {
        let size = declared.map { "is declared as \($0) bytes, which is over" } ?? "has more bytes than"
        return DownloadError(
            code: .bodyTooLarge,
            message:
                "The body of \(shown(address)) \(size) the limit of \(limit) bytes; "
                + "raise that limit to accept it.",
            url: url(address),
            status: status,
            headers: headers
        )
    }

    static func emptyBody(status: Int?, headers: HeaderFields, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .emptyBody,
            message: "The body of \(shown(address)) is empty; check what is stored there.",
            url: url(address),
            status: status,
            headers: headers
        )
    }

    static func tooManyRedirects(limit: Int, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .tooManyRedirects,
            message: "\(address.host) redirected more than \(limit) times, last from \(shown(address)); "
                + "request the final URL, or raise that limit if it is not a loop.",
            url: url(address)
        )
    }

    static func unsafeRedirect(to target: String, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .unsafeRedirect,
            message: "\(shown(address)) redirects to \(shortened(target)), which is not followed; "
                + "only http and https are.",
            url: url(address)
        )
    }

    static func invalidResponse(_ reason: String, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .invalidResponse,
            message: "\(address.host) did not answer \(shown(address)) with valid HTTP: \(reason). "
                + "Check that a web server listens there.",
            url: url(address)
        )
    }

    /// A proxy answered CONNECT with `status`; only one that failed itself may do otherwise the next time.
    static func tunnelRefused(status: Int, at address: ResourceAddress) -> DownloadError {
        let (code, advice): (Code, String) =
            switch status {
            case 407: (.proxyRefused, "Check the credentials for the proxy.")
            case 429, 500...: (.cannotConnect, "Check the host and port, or try again later.")
            default: (.proxyRefused, "Let the proxy allow that host and port, or connect without it.")
            }
        return DownloadError(
            code: code,
            message:
                "The proxy refused to connect to \(address.host) for \(shown(address)), with status \(status). \(advice)",
            url: url(address)
        )
    }

    // MARK: Files

    static func fileNotFound(_ path: String, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .fileNotFound,
            message: "There is no file \(shortened(path)); check the path.",
            url: url(address)
        )
    }

    static func fileUnreadable(_ path: String, reason: String, at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .fileUnreadable,
            message: "The file \(shortened(path)) cannot be read: \(reason). Check the path and its permissions.",
            url: url(address)
        )
    }

    // MARK: Parts

    static func url(_ address: ResourceAddress) -> URL? {
        address.scheme == .data ? nil : URL(string: address.display)
    }

    static func shown(_ address: ResourceAddress) -> String {
        address.scheme == .data ? "the data URL" : self.shortened(address.display)
    }

    /// Servers choose some of what messages quote, and may make it long.
    static func shortened(_ text: String) -> String {
        text.utf8.count <= 300 ? text : "\(text.prefix(300))..."
    }
}

// The errors that tell of a transfer as a whole.

extension DownloadError {
    /// The error of a transfer that took longer than one of its limits.
    static func past(
        _ limit: TransferMachine.TimeLimit,
        of limits: TransferLimits,
        _ response: ResponseState
    ) -> DownloadError {
        switch limit {
        case .total: .tookTooLong(limits.totalTimeout ?? .zero, of: response)
        case .firstByte: .noFirstByte(after: limits.firstByteTimeout ?? .zero, of: response)
        case .speed: .tooSlow(limits.minimumSpeed, of: response)
        case .silence: .stalled(after: limits.timeout, of: response)
        }
    }

    static func bodyTooLarge(limit: Int, declared: Int64?, of response: ResponseState) -> DownloadError {
        .bodyTooLarge(
            limit: limit,
            declared: declared,
            status: response.status,
            headers: response.headers,
            at: response.address
        )
    }

    static func undecodable(_ failure: ContentDecoder.Failure, limit: Int, of response: ResponseState) -> DownloadError
    {
        switch failure {
        case .corrupt: .invalidResponse("its body is not coded as its Content-Encoding says", at: response.address)
        case .tooLarge: .bodyTooLarge(limit: limit, declared: nil, of: response)
        case .outOfMemory: .outOfMemory(at: response.address)
        case .missingTrait(let trait):
            .invalidResponse("its Content-Encoding needs the trait \(trait) of Tintype", at: response.address)
        }
    }

    private static func tookTooLong(_ limit: Duration, of response: ResponseState) -> DownloadError {
        .about(
            response,
            .timedOut,
            "\(shown(response.address)) was not complete after \(limit), with \(response.receivedBytes) bytes here; "
                + "ask again later, or raise the total timeout."
        )
    }

    private static func stalled(after limit: Duration, of response: ResponseState) -> DownloadError {
        .about(
            response,
            .timedOut,
            "\(response.address.host) sent nothing for \(limit) after \(response.receivedBytes) bytes of "
                + "\(shown(response.address)); ask again later, or raise the idle timeout."
        )
    }

    private static func noFirstByte(after limit: Duration, of response: ResponseState) -> DownloadError {
        .about(
            response,
            .timedOut,
            "\(response.address.host) did not begin to answer \(shown(response.address)) within \(limit); "
                + "ask again later, or raise the timeout of the first byte."
        )
    }

    private static func tooSlow(_ speed: DownloadActor.MinimumSpeed?, of response: ResponseState) -> DownloadError {
        .about(
            response,
            .tooSlow,
            "\(response.address.host) sends \(shown(response.address)) more slowly than "
                + "\(speed?.bytesPerSecond ?? 0) bytes a second; lower the minimum speed to accept it."
        )
    }

    /// A body that ended too early; `end` says in a few words at which point.
    static func cutShort(_ response: ResponseState, _ end: String) -> DownloadError {
        .about(
            response,
            .bodyCutShort,
            "The body of \(shown(response.address)) ended \(end), with \(response.receivedBytes) bytes here. Ask again."
        )
    }

    static func unacceptableContentType(of response: ResponseState) -> DownloadError {
        let type = response.headers["Content-Type"].map { "has the type \(shortened($0))" } ?? "has no type"
        return .about(
            response,
            .unacceptableContentType,
            "\(shown(response.address)) \(type), which the request does not accept; "
                + "check the URL, or accept that type."
        )
    }

    static func notStreamed(at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .unsupportedScheme,
            message: "\(shown(address)) cannot be streamed; ask for its response instead.",
            url: url(address)
        )
    }

    static func refused(_ what: String, _ reason: any Error, url: URL) -> DownloadError {
        DownloadError(
            code: .refused,
            message: "The \(what) was refused by the downloader's hook: \(reason). Change the \(what) or the hook.",
            url: withoutCredentials(url),
            underlyingError: reason
        )
    }

    static func decryptionFailed(_ reason: any Error, url: URL) -> DownloadError {
        DownloadError(
            code: .decryptionFailed,
            message: "The body cannot be decrypted: \(reason). Check the key, and that the server sent the right file.",
            url: withoutCredentials(url),
            underlyingError: reason
        )
    }

    static func withoutCredentials(_ url: URL) -> URL? {
        (try? ResourceAddress(url.absoluteString)).flatMap { self.url($0) }
    }

    private static func about(_ response: ResponseState, _ code: Code, _ message: String) -> DownloadError {
        DownloadError(
            code: code,
            message: message,
            url: self.url(response.address),
            status: response.status,
            headers: response.headers
        )
    }
}
