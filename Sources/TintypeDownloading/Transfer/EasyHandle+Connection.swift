// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
import CTintypeCurl

// Answers belong to the requests that they follow.

/// How a body ended that libcurl takes for whole.
struct BodyEnd {
    /// The bytes that came over the network.
    let bytes: Int64
    /// Whether the server ended the HTTP/2 stream after them.
    let hasEndedStream: Bool
    /// Whether the codings of the body have come to their ends.
    var hasEndedCodings = true
}

extension EasyHandle {
    /// Looks at each connection just before a request goes over it.
    ///
    /// An HTTP/1.1 server that sends more than its answer, at once or later, has sent what would pass for the answer
    /// to the next request. libcurl drops what it read too much, and leaves the rest for that request.
    func guardReuse() {
        ccurl_set_prereq_callback(
            self.easy,
            { context, remoteAddress, _, remotePort, localPort in
                guard let context else { return CInt(CURL_PREREQFUNC_ABORT) }
                let handle = EasyHandle.of(context)
                let isUsable =
                    handle.mayReuseConnection(to: remoteAddress)
                    && handle.claimConnection(
                        localPort: Int(localPort),
                        remotePort: Int(remotePort),
                        remoteAddress: remoteAddress
                    )
                return CInt(isUsable ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT)
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        ccurl_set_debug_callback(
            self.easy,
            { _, kind, bytes, count, context in
                guard let context else { return 0 }
                let handle = EasyHandle.of(context)
                switch kind {
                case CURLINFO_DATA_IN: handle.countFraming(count)
                case CURLINFO_TEXT:
                    handle.read(message: UnsafeRawBufferPointer(start: bytes, count: count))
                default: break
                }
                return 0
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    /// Whether the policy of the transfer lets it have a connection to that address, which another one may have made
    /// under a policy of its own.
    ///
    /// Otherwise it is sent over a new one, whose address is looked at as it is made.
    private func mayReuseConnection(to remoteAddress: UnsafePointer<CChar>?) -> Bool {
        guard let transfer, self.multi.mixesPolicies, !self.takesFreshConnection else { return true }
        let isAllowed = self.connections.admitsReuse(
            remoteAddress,
            policy: transfer.outgoing.networkPolicy,
            target: transfer.address,
            isLocalSocket: transfer.outgoing.options?.unixSocketPath != nil
        )
        if !isAllowed { self.foundSurplus = true }
        return isAllowed
    }

    private func claimConnection(localPort: Int, remotePort: Int, remoteAddress: UnsafePointer<CChar>?) -> Bool {
        guard let transfer else { return false }
        var hasPending = false
        if transfer.address.scheme == .https {
            // Frames come at any time, and belong to streams. The state of another TLS library is unknown.
            guard let tls = ccurl_get_openssl(self.easy) else { return true }
            guard ccrypto_speaks_http2(tls) == 0 else {
                return self.shareConnection(
                    of: tls,
                    localPort: localPort,
                    remotePort: remotePort,
                    remoteAddress: remoteAddress
                )
            }
            self.multi.limitReads(of: tls)
            // Tickets come before the first answer; a late one costs the connection.
            hasPending = ccrypto_has_pending(tls) != 0
        }
        var newConnections = 0
        ccurl_getinfo_long(self.easy, CURLINFO_NUM_CONNECTS, &newConnections)
        // libcurl may try a request twice, over two connections.
        self.releaseConnection()
        let isNew = newConnections > 0
        guard isNew || !hasPending,
            let descriptor = self.multi.poll.claim(
                localPort: localPort,
                remotePort: remotePort,
                remoteAddress: remoteAddress,
                isNew: isNew,
                by: transfer.id
            )
        else {
            self.foundSurplus = true
            return false
        }
        self.claimedDescriptor = descriptor
        return true
    }

    /// Lets the transfer share an HTTP/2 connection; returns false if it must use another one.
    private func shareConnection(
        of tls: UnsafeMutableRawPointer,
        localPort: Int,
        remotePort: Int,
        remoteAddress: UnsafePointer<CChar>?
    ) -> Bool {
        self.leaveConnection(isWhole: false)
        var newConnections = 0
        ccurl_getinfo_long(self.easy, CURLINFO_NUM_CONNECTS, &newConnections)
        let isNew = newConnections > 0
        let descriptor = self.multi.poll.share(
            localPort: localPort,
            remotePort: remotePort,
            remoteAddress: remoteAddress,
            isNew: isNew
        )
        self.sharedDescriptor = descriptor
        guard descriptor >= 0 else {
            // Two sockets have these ports, so that nobody can tell which one to watch.
            self.multi.limitReads(of: tls)
            return true
        }
        if let frames = self.multi.poll.frames(of: descriptor)
            ?? (isNew ? self.multi.watchFrames(of: tls, descriptor) : nil)
        {
            self.stream = (frames, frames.tracker.open())
            // The new stream reads whatever has come for the others.
            self.multi.lookAhead(frames, on: descriptor)
        } else if !isNew {
            // The transfer that made it has left before its request was sent. Nobody saw what came since.
            self.leaveConnection(isWhole: true)
            self.multi.poll.end(descriptor)
            self.foundSurplus = true
            return false
        }
        return true
    }

    /// How the body of the response ended.
    var bodyEnd: BodyEnd {
        let bytes = Int64(ccurl_get_body_bytes(self.easy))
        guard let (frames, id) = self.stream, let transfer else { return BodyEnd(bytes: bytes, hasEndedStream: false) }
        let hasTrailers = transfer.machine.exchange?.hasTrailers ?? false
        let hasEnded = frames.tracker.hasEnded(id, bodyBytes: Int(bytes), hasTrailers: hasTrailers)
        return BodyEnd(bytes: bytes, hasEndedStream: hasEnded)
    }

    /// Ends the transfer's share of a connection.
    func leaveConnection(isWhole: Bool) {
        if let (frames, id) = self.stream { frames.tracker.close(id) }
        self.stream = nil
        guard self.sharedDescriptor >= 0 else { return }
        self.multi.poll.endSharing(self.sharedDescriptor, isWhole: isWhole)
        // A paused stream keeps libcurl from reading for the others, and this may have been that stream.
        self.multi.queueUnread(self.sharedDescriptor)
        self.sharedDescriptor = -1
    }

    /// Gives the connection back, which may be closed by now.
    func releaseConnection() {
        self.leaveConnection(isWhole: false)
        guard let transfer, self.claimedDescriptor >= 0 else { return }
        self.multi.poll.release(self.claimedDescriptor, by: transfer.id)
        self.claimedDescriptor = -1
    }

    /// Makes libcurl report the bytes outside of the body, if they have no limit or other bytes may follow them.
    ///
    /// Not for all transfers: formatting these messages takes libcurl longer than a small transfer may take.
    func watchFraming() {
        guard !self.watchesFraming else { return }
        self.watchesFraming = true
        self.framedBytes = 0
        ccurl_setopt_long(self.easy, CURLOPT_VERBOSE, 1)
    }

    /// Counts bytes of a chunked body as they came.
    ///
    /// Sizes and extensions of chunks have no limit in libcurl, which hands none of them over.
    private func countFraming(_ count: Int) {
        guard let transfer else { return }
        let body = Int(ccurl_get_body_bytes(self.easy))
        if self.framedBytes - body > transfer.limits.framingLimit(bodyBytes: body) {
            let reason = "its chunks have more framing than content"
            transfer.stop(.invalidResponse(reason, at: transfer.address), at: .now)
            self.rest()
        }
        self.framedBytes += count
        self.spend(count)
    }

    /// libcurl drops what it read beyond a body that is chunked or that must not be there, and says so in words only.
    private func read(message: UnsafeRawBufferPointer) {
        let words = ["Excess found", "Leftovers after chunking"]
        if words.contains(where: { message.starts(with: $0.utf8) }) { self.forbidReuse() }
    }

    /// Ends the connection with the transfer, or with the last of the transfers that it carries.
    ///
    /// libcurl would keep a multiplexed connection although its server has fallen silent, and use it for the next
    /// request.
    func forbidReuse() {
        guard !self.forbidsReuse else { return }
        self.forbidsReuse = true
        ccurl_setopt_long(self.easy, CURLOPT_FORBID_REUSE, 1)
    }

    // MARK: Turns

    /// The cost of handing over a chunk, in bytes: chunks of one byte are expensive.
    static let callCost = 128

    /// Counts bytes that libcurl has read for the transfer, or that were decoded of them; at the end of its share it
    /// rests until the next turn.
    ///
    /// The first piece of a turn is always taken, however large it is: it would be too large in the next turn as well.
    ///
    /// - Returns: Whether something of the share was left for these bytes.
    @discardableResult
    func spend(_ count: Int) -> Bool {
        if self.turnNumber != self.multi.turnNumber {
            self.turnNumber = self.multi.turnNumber
            self.spentBytes = 0
        }
        let hasRest = self.spentBytes <= self.multi.turnShare
        self.spentBytes += count
        if self.spentBytes > self.multi.turnShare { self.rest() }
        return hasRest
    }

    private func rest() {
        guard !self.isResting else { return }
        curl_easy_pause(self.easy, CURLPAUSE_RECV)
        self.multi.rest(self)
    }
}
