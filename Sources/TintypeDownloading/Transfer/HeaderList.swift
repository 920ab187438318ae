import CCurl
import TintypeHTTP

/// Request header fields in the form that libcurl reads.
final class HeaderList {
    private(set) var list: UnsafeMutablePointer<curl_slist>?

    /// Makes the lines of a request's head; nothing becomes one elsewhere.
    init(_ headers: HeaderFields) throws(DownloadError) {
        try headers.checkSendable()
        for field in headers {
            // libcurl takes "Name:" as the wish to leave a field out; "Name;" sends it empty.
            let isBlank = field.value.utf8.allSatisfy { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            let line = isBlank ? "\(field.name);" : "\(field.name): \(field.value)"
            // Without memory the old list stays as it is; a request must not go without one of its fields.
            guard let list = curl_slist_append(self.list, line) else { throw .outOfMemoryForHeaders() }
            self.list = list
        }
    }

    deinit {
        curl_slist_free_all(self.list)
    }
}
