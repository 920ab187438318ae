import CCurl

/// What libcurl reported about a transfer that failed.
public struct CurlError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The `CURLcode`.
    public let code: Int
    /// What libcurl says the code means, with its details where it gave any.
    public let message: String

    init(code: CURLcode, details: String) {
        self.code = Int(code.rawValue)
        let meaning = String(cString: curl_easy_strerror(code))
        self.message = details.isEmpty ? meaning : details
    }

    public var description: String { "libcurl error \(self.code): \(self.message)" }
}
