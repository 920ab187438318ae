// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
public import TintypeHTTP

/// The durations and counts of a transfer.
///
/// Each duration is the sum over all requests, including redirects and retries. The time in which a transfer waited for
/// its turn does not count.
public struct TransferMetrics: Sendable, Hashable {
    /// Finding the address of the host; zero on a connection that was open already.
    public internal(set) var nameLookup: Duration = .zero
    /// Opening the connection, without TLS; zero on a connection that was open already.
    public internal(set) var connect: Duration = .zero
    /// The TLS handshake; zero without TLS or on a connection that was open already.
    public internal(set) var tls: Duration = .zero
    /// From the start to the first byte of the response.
    public internal(set) var firstByte: Duration = .zero
    /// From the start to the last byte of the response.
    public internal(set) var total: Duration = .zero
    /// The bytes of body that were received, before any `Content-Encoding` was undone.
    public internal(set) var bytes: Int64 = 0
    /// Whether the last request went over a connection that was open already.
    public internal(set) var connectionReused = false
    /// The version of HTTP, or `nil` for `file:` and `data:` URLs.
    public internal(set) var httpVersion: ProtocolVersion?
    /// The number of redirects that were followed.
    public internal(set) var redirectCount = 0

    /// The tries after the first one.
    public internal(set) var retryCount = 0
    /// The bytes of the body that an earlier try or process had received, and that were not asked for again.
    public internal(set) var resumedBytes: Int64 = 0
    /// The address and port of the last request, such as `192.0.2.7:443`; the proxy's if one was used.
    public internal(set) var remoteAddress: String?
}

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
