import CCurl
import TintypeHTTP

extension TransferMetrics {
    /// Adds what libcurl measured about one request.
    mutating func add(_ measured: ccurl_metrics) {
        // libcurl counts each time from the start of the request, and leaves a phase that
        // did not take place at zero.
        self.nameLookup += .microseconds(measured.name_lookup)
        self.connect += .microseconds(max(0, measured.connect - measured.name_lookup))
        self.tls += .microseconds(max(0, measured.tls - measured.connect))
        self.firstByte += .microseconds(measured.first_byte)
        self.total += .microseconds(measured.total)
        self.bytes += Int64(measured.received)
        self.connectionReused = measured.new_connections == 0
        if let address = measured.remote_address, address.pointee != 0 {
            let text = String(cString: address)
            let host = text.utf8.contains(UInt8(ascii: ":")) ? "[\(text)]" : text
            self.remoteAddress = "\(host):\(measured.remote_port)"
        }
        self.httpVersion = ProtocolVersion(curlVersion: measured.http_version)
    }
}

extension ProtocolVersion {
    /// The version that `CURLINFO_HTTP_VERSION` gives, or `nil` when there was no response.
    init?(curlVersion: Int) {
        switch curlVersion {
        case Int(CURL_HTTP_VERSION_1_0): self = .http1_0
        case Int(CURL_HTTP_VERSION_1_1): self = .http1_1
        case Int(CURL_HTTP_VERSION_2_0): self = .http2
        case Int(CURL_HTTP_VERSION_3): self = .http3
        default: return nil
        }
    }
}
