// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl

/// A libcurl easy handle that serves one transfer after the other.
///
/// The handle sets constant options once. It remembers the options that differ between transfers, and sets them only if
/// they change. Resetting the handle each time would cost more and save nothing.
///
/// Not sendable: only the loop's thread touches it.
final class EasyHandle {
    /// The number of bytes that libcurl reads at once, for few transfers and for many.
    ///
    /// libcurl allocates the buffer for each transfer, and touches the part that arrives. Each of many transfers gets
    /// little at once.
    private static let receiveBufferSize = (few: 64 << 10, many: 16 << 10)
    private static let crowd = 256

    let easy: UnsafeMutableRawPointer
    /// The transfer that the callbacks report to.
    var transfer: Transfer?
    /// The addresses that the policy was asked about for this request.
    var connections = ConnectionCheck()
    /// Whether libcurl began to look a name up for this request.
    private var hasStartedLookUp = false
    /// Whether it may serve another transfer: one with settings of its own may not, and none where libcurl would take
    /// a line of the next response for more of a field that is freed.
    let isReusable: Bool
    /// Sound: the engine lets its handles go before the multi handle, and each callback would count a reference else.
    unowned(unsafe) let multi: CurlMulti
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var connectTimeout = Duration.zero
    private var verifiesCertificates = true
    private var waitsForMultiplexing = false
    private var receiveBufferSize = 0
    /// The number of times that the transfer has used up its share of a turn.
    var restCount = 0

    // The connection that the transfer has for itself, and what is known of it; see the extension.
    var claimedDescriptor: CInt = -1
    /// The socket of the connection that it shares with others, or -1.
    var sharedDescriptor: CInt = -1
    /// The stream of the request on that connection.
    var stream: (frames: ConnectionFrames, id: UInt32)?
    /// Whether the transfer must be tried over another connection.
    var foundSurplus = false
    private(set) var takesFreshConnection = false
    var forbidsReuse = false
    var watchesFraming = false
    /// The bytes of a chunked body as they came.
    var framedBytes = 0
    /// Whether the transfer waits for the next turn of the loop.
    var isResting = false
    var turnNumber: UInt64 = 0
    var spentBytes = 0

    /// Creates a handle; returns `nil` without memory, for which libcurl refuses a setting as well.
    ///
    /// - Parameters:
    ///   - options: The options of the one transfer that it will serve; `nil` for ordinary transfers.
    ///   - configuration: The options of all transfers.
    ///   - multi: The multi handle that it will be added to.
    init?(options: TransportOptions?, configuration: DownloadActor.Configuration, multi: CurlMulti) {
        guard let easy = curl_easy_init() else { return nil }
        self.easy = easy
        // Not before: an object that is not whole has no deinit.
        self.errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        self.multi = multi
        self.isReusable = options == nil && ccurl_forgets_fields() != 0
        self.errorBuffer.pointee = 0
        multi.watchSockets(of: easy)
        self.setFixedOptions()
        self.setCallbacks()
        if let jar = CookiePolicy.jar(of: options?.cookies, configured: configuration.cookieJar) {
            self.use(jar)
        } else {
            ccurl_setopt_share(easy, multi.share)
        }
        guard self.set(options?.tls ?? configuration.tls), self.set(options?.proxy ?? configuration.proxy) else {
            return nil
        }
        guard options.map(self.set) ?? true else { return nil }
    }

    deinit {
        curl_easy_cleanup(self.easy)
        self.errorBuffer.deallocate()
    }

    /// The handle that a callback or a message is about.
    static func of(_ context: UnsafeMutableRawPointer) -> EasyHandle {
        Unmanaged<EasyHandle>.fromOpaque(context).takeUnretainedValue()
    }

    /// The handle around `easy`.
    static func of(easy: UnsafeMutableRawPointer) -> EasyHandle? {
        var context: UnsafeMutableRawPointer?
        ccurl_getinfo_pointer(easy, CURLINFO_PRIVATE, &context)
        return context.map { Self.of($0) }
    }

    /// Makes the handle ready to be added to the multi handle for `transfer`.
    ///
    /// libcurl does not copy `headers`: they must live until the transfer is over.
    func prepare(for transfer: Transfer, headers: HeaderList, activeCount: Int) {
        self.transfer = transfer
        self.hasStartedLookUp = false
        self.connections = ConnectionCheck(leadsToProxy: transfer.outgoing.leadsToProxy)
        self.errorBuffer.pointee = 0
        ccurl_setopt_string(self.easy, CURLOPT_URL, transfer.address.text)
        ccurl_setopt_pointer(self.easy, CURLOPT_HTTPHEADER, headers.list)
        self.forgetConnection()
        if transfer.limits.connectTimeout != self.connectTimeout {
            self.connectTimeout = transfer.limits.connectTimeout
            ccurl_setopt_long(self.easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, self.connectTimeout.wholeMilliseconds))
        }
        if transfer.request.allowsInvalidCertificates == self.verifiesCertificates {
            self.verifiesCertificates.toggle()
            ccurl_setopt_long(self.easy, CURLOPT_SSL_VERIFYPEER, self.verifiesCertificates ? 1 : 0)
            ccurl_setopt_long(self.easy, CURLOPT_SSL_VERIFYHOST, self.verifiesCertificates ? 2 : 0)
        }
        let size = activeCount > Self.crowd ? Self.receiveBufferSize.many : Self.receiveBufferSize.few
        if size != self.receiveBufferSize {
            self.receiveBufferSize = size
            ccurl_setopt_long(self.easy, CURLOPT_BUFFERSIZE, size)
        }
        // If the server may speak HTTP/2, wait for the first connection instead of opening a second one.
        if (transfer.address.scheme == .https) != self.waitsForMultiplexing {
            self.waitsForMultiplexing.toggle()
            ccurl_setopt_long(self.easy, CURLOPT_PIPEWAIT, self.waitsForMultiplexing ? 1 : 0)
        }
    }

    private func forgetConnection() {
        self.claimedDescriptor = -1
        self.foundSurplus = false
        self.restCount = 0
        if self.takesFreshConnection {
            self.takesFreshConnection = false
            ccurl_setopt_long(self.easy, CURLOPT_FRESH_CONNECT, 0)
        }
        if self.forbidsReuse {
            self.forbidsReuse = false
            ccurl_setopt_long(self.easy, CURLOPT_FORBID_REUSE, 0)
        }
        if self.watchesFraming {
            self.watchesFraming = false
            ccurl_setopt_long(self.easy, CURLOPT_VERBOSE, 0)
        }
    }

    /// Makes the handle ready to be added once more for the same transfer, over a connection of its own.
    func takeFreshConnection() {
        self.foundSurplus = false
        self.takesFreshConnection = true
        ccurl_setopt_long(self.easy, CURLOPT_FRESH_CONNECT, 1)
    }

    /// Lets a paused transfer continue.
    ///
    /// libcurl hands over the bytes that it has kept before this returns. If they are refused, it returns the reason,
    /// does no more work for the transfer, and does not report its end.
    func unpause() -> CURLcode {
        self.multi.unpause(self.easy)
    }

    /// libcurl's text about the last failure; empty without a text.
    var errorDetails: String { String(cString: self.errorBuffer) }

    /// How long it took until the request could be sent; zero before that.
    var connectTime: Duration {
        .microseconds(ccurl_get_pretransfer_time(self.easy))
    }

    /// Whether libcurl waits for the address of a name, in a thread that nothing ends before the system does.
    var isLookingUp: Bool { self.hasStartedLookUp && ccurl_get_name_lookup_time(self.easy) == 0 }

    private func setFixedOptions() {
        ccurl_setopt_pointer(self.easy, CURLOPT_PRIVATE, Unmanaged.passUnretained(self).toOpaque())
        ccurl_setopt_pointer(self.easy, CURLOPT_ERRORBUFFER, self.errorBuffer)
        self.guardConnections()
        self.guardReuse()
        // Signals belong to the program, not to a library.
        ccurl_setopt_long(self.easy, CURLOPT_NOSIGNAL, 1)
        ccurl_allow_http_only(self.easy)
        // Redirects are followed by the engine, which looks at each target first.
        ccurl_setopt_long(self.easy, CURLOPT_FOLLOWLOCATION, 0)
        // Over HTTP/2 only the frames tell whether a body is whole, and only OpenSSL shows them.
        self.setHTTPVersion(ccurl_has_openssl() != 0 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        // Images are compressed already, and a compressed answer hides the length. `ContentDecoder` inflates bodies
        // that a server compresses all the same.
        ccurl_setopt_string(self.easy, CURLOPT_ACCEPT_ENCODING, "identity")
        ccurl_setopt_long(self.easy, CURLOPT_HTTP_CONTENT_DECODING, 0)
        ccurl_setopt_long(self.easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // A transfer that ends during a look-up must not wait for it, because the loop would stand still.
        ccurl_leave_look_ups(self.easy)
        ccurl_set_resolver_callback(
            self.easy,
            { _, _, context in
                if let context { EasyHandle.of(context).hasStartedLookUp = true }
                return 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private func setCallbacks() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        ccurl_set_header_callback(
            self.easy,
            { bytes, size, count, context in
                guard let context else { return 0 }
                let handle = EasyHandle.of(context)
                guard let transfer = handle.transfer else { return 0 }
                let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
                let verdict = transfer.receive(headerLine: line, at: handle.multi.now)
                // The end of a head is a line without a text.
                if line.count <= 2 {
                    if transfer.hasWatchedFraming { handle.watchFraming() }
                    if let stream = handle.stream { handle.multi.lookAhead(stream.frames, on: handle.sharedDescriptor) }
                }
                if handle.sharedDescriptor >= 0 { handle.multi.poll.allow(line.count, on: handle.sharedDescriptor) }
                return verdict == .proceed ? line.count : 0
            },
            context
        )
        ccurl_set_write_callback(
            self.easy,
            { bytes, size, count, context in
                guard let context else { return 0 }
                let handle = EasyHandle.of(context)
                guard let transfer = handle.transfer else { return 0 }
                let chunk = UnsafeRawBufferPointer(start: bytes, count: size * count)
                if let stream = handle.stream { handle.multi.lookAhead(stream.frames, on: handle.sharedDescriptor) }
                switch transfer.receive(body: chunk, at: handle.multi.now, mayDecode: handle.spend) {
                case .proceed:
                    let shared = handle.sharedDescriptor
                    if shared >= 0 { handle.multi.poll.allow(chunk.count, on: shared) }
                    handle.spend((handle.watchesFraming ? 0 : chunk.count) + EasyHandle.callCost)
                    return chunk.count
                case .pause: return Int(CURL_WRITEFUNC_PAUSE)
                // Any other count than the one given makes libcurl end the transfer.
                case .abort: return chunk.isEmpty ? 1 : 0
                }
            },
            context
        )
    }
}
