import CCurl

/// Request header fields in the form that libcurl reads.
final class HeaderList {
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// Makes the lines of a request's head; nothing becomes one elsewhere.
    init(_ headers: HTTPHeaders) throws(DownloadError) {
        try headers.checkSendable()
        for (name, value) in headers {
            // libcurl takes "Name:" as the wish to leave a field out; "Name;" sends it empty.
            let isBlank = value.utf8.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            let line = isBlank ? "\(name);" : "\(name): \(value)"
            // Without memory the old list stays as it is; a request must not go without one of its fields.
            guard let list = curl_slist_append(self.list, line) else { throw .outOfMemoryForHeaders() }
            self.list = list
        }
    }

    deinit {
        curl_slist_free_all(self.list)
    }
}
