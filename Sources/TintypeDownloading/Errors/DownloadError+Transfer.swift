import FoundationEssentials
import TintypeHTTP

// The errors that tell of a transfer as a whole.

extension DownloadError {
    static func tookTooLong(_ limit: Duration, of transfer: Transfer) -> DownloadError {
        .about(
            transfer,
            .timedOut,
            "\(shown(transfer.address)) was not complete after \(limit), with \(transfer.receivedBytes) bytes here; "
                + "ask again later, or raise totalTimeout."
        )
    }

    static func noFirstByte(after limit: Duration, of transfer: Transfer) -> DownloadError {
        .about(
            transfer,
            .timedOut,
            "\(transfer.address.host) did not begin to answer \(shown(transfer.address)) within \(limit); "
                + "ask again later, or raise firstByteTimeout."
        )
    }

    static func tooSlow(_ transfer: Transfer) -> DownloadError {
        .about(
            transfer,
            .tooSlow,
            "\(transfer.address.host) sends \(shown(transfer.address)) more slowly than "
                + "\(transfer.limits.minimumSpeed?.bytesPerSecond ?? 0) bytes a second; lower minimumSpeed to accept it."
        )
    }

    static func cutShort(received: Int, expected: Int, of transfer: Transfer) -> DownloadError {
        .about(
            transfer,
            .bodyCutShort,
            "The body of \(shown(transfer.address)) ended after \(received) of \(expected) bytes. Ask again."
        )
    }

    /// A coded body without its end: of how many bytes is not known.
    static func cutShort(_ transfer: Transfer) -> DownloadError {
        .about(
            transfer,
            .bodyCutShort,
            "The coded body of \(shown(transfer.address)) ended before its coding did, after "
                + "\(transfer.receivedBytes) bytes. Ask again."
        )
    }

    static func unacceptableContentType(of transfer: Transfer) -> DownloadError {
        let type = transfer.responseHeaders["Content-Type"].map { "has the type \(shortened($0))" } ?? "has no type"
        return .about(
            transfer,
            .unacceptableContentType,
            "\(shown(transfer.address)) \(type), which the request does not accept; "
                + "check the URL, or add the type to acceptableContentTypes."
        )
    }

    static func notStreamed(at address: ResourceAddress) -> DownloadError {
        DownloadError(
            code: .unsupportedScheme,
            message: "\(shown(address)) can't be streamed; ask for its response instead.",
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
            message: "The body can't be decrypted: \(reason). Check the key, and that the server sent the right file.",
            url: withoutCredentials(url),
            underlyingError: reason
        )
    }

    static func withoutCredentials(_ url: URL) -> URL? {
        (try? ResourceAddress(url.absoluteString)).flatMap { self.url($0) }
    }

    private static func about(_ transfer: Transfer, _ code: Code, _ message: String) -> DownloadError {
        DownloadError(
            code: code,
            message: message,
            url: self.url(transfer.address),
            status: transfer.status,
            headers: transfer.responseHeaders
        )
    }
}
