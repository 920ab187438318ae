// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connection to a ``FaultyOrigin``, on a thread that may block.
struct FaultyConnection {
    private enum Outcome {
        /// The connection is ready for its next request.
        case next
        /// The origin closed or reset the connection.
        case closed
        case clientLeft
        case stopped
    }

    private let descriptor: CInt
    private let server: FaultyServer
    /// The TLS session on the socket, if the origin uses TLS.
    private let tls: FaultyTLS?
    /// The bytes that were received and not yet parsed.
    private var buffer: [UInt8] = []

    init(_ descriptor: CInt, server: FaultyServer) {
        self.descriptor = descriptor
        self.server = server
        self.tls = server.authority.flatMap { FaultyTLS(descriptor, authority: $0, speaksHTTP2: server.speaksHTTP2) }
    }

    mutating func serve() {
        defer { self.server.close(connection: self.descriptor) }
        guard self.server.authority == nil || self.tls != nil else { return }
        var lastPath: String?
        while true {
            guard let request = self.readRequest() else {
                self.clientLeft(lastPath)
                return
            }
            let path = self.path(of: request)
            lastPath = path
            let response = self.server.record.update { state in
                state.counts[path, default: .init()].requests += 1
                state.paths.append(path)
                state.heads[path, default: []].append(String(decoding: request, as: UTF8.self))
                if let first = state.sequences[path]?.first {
                    state.sequences[path]?.removeFirst()
                    return first
                }
                return state.responses[path] ?? .body(Array("no script".utf8), status: 404)
            }
            switch self.perform(response, request: request) {
            case .next: continue
            case .clientLeft:
                self.clientLeft(lastPath)
                return
            case .closed, .stopped: return
            }
        }
    }

    private func clientLeft(_ path: String?) {
        guard let path else { return }
        self.server.record.update { $0.counts[path, default: .init()].disconnects += 1 }
    }

    private mutating func perform(_ response: FaultyResponse, request: [UInt8]) -> Outcome {
        for step in response.steps {
            let outcome = self.perform(step, request: request)
            guard case .next = outcome else { return outcome }
        }
        return .next
    }

    private mutating func perform(_ step: FaultyResponse.Step, request: [UInt8]) -> Outcome {
        switch step {
        case .send(let bytes): return self.send(bytes)
        case .pause(let milliseconds): return self.wait(for: nil, milliseconds: milliseconds)
        case .wait(let latch): return self.wait(for: latch, milliseconds: -1)
        case .signal(let latch):
            latch.open()
            return .next
        case .flood(let bytes):
            while case .next = self.send(bytes) { self.server.record.update { $0.floodedBytes += bytes.count } }
            return .clientLeft
        case .sendTickets(let count): return self.tls?.sendTickets(count) ?? true ? .next : .clientLeft
        case .awaitStreams(let count): return self.readFrames(untilStreams: count) ? .next : .clientLeft
        case .stall: return self.wait(for: nil, milliseconds: -1)
        case .echo: return self.perform(.body(request), request: request)
        case .answer(let answer): return self.perform(answer(request), request: request)
        case .close, .cutOff:
            if case .close = step { self.tls?.sendCloseAlert() }
            // Wait until the client has closed its side, so that no reset can overtake the last bytes.
            shutdown(self.descriptor, CInt(SHUT_WR))
            while LoopbackSocket.receive(from: self.descriptor) != nil {}
            return .closed
        case .reset:
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(self.descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            return .closed
        }
    }

    private func send(_ bytes: [UInt8]) -> Outcome {
        let isSent = self.tls?.send(bytes) ?? LoopbackSocket.send(bytes, to: self.descriptor)
        return isSent ? .next : .clientLeft
    }

    private func receive() -> [UInt8]? {
        if let tls { return tls.receive() }
        return LoopbackSocket.receive(from: self.descriptor)
    }

    /// Waits until the latch opens, the client leaves, the origin stops, or the time is over.
    private func wait(for latch: Latch?, milliseconds: Int) -> Outcome {
        var sources = [
            pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: self.server.stopping.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: latch?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            let count = poll(&sources, nfds_t(sources.count), CInt(milliseconds))
            if count < 0 && errno == EINTR { continue }
            if sources[1].revents != 0 { return .stopped }
            if sources[0].revents != 0 {
                var byte: UInt8 = 0
                let isEnd = sources[0].revents & ~Int16(POLLIN) != 0
                if isEnd || recv(self.descriptor, &byte, 1, CInt(MSG_PEEK)) <= 0 { return .clientLeft }
                // The client sent its next request early. The request can wait, but a disconnect cannot.
                // 0x2000 is POLLRDHUP, whose name needs _GNU_SOURCE.
                sources[0].events = 0x2000
                continue
            }
            return .next
        }
    }

    /// Returns the next head with the empty line at its end, or `nil` if the client has left.
    ///
    /// Drops the body of the request.
    private mutating func readRequest() -> [UInt8]? {
        guard let head = self.readHead() else { return nil }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let length = lines.first { $0.lowercased().hasPrefix("content-length:") }
        let byteCount = length.flatMap { Int($0.drop { $0 != ":" }.dropFirst().filter(\.isNumber)) } ?? 0
        while self.buffer.count < byteCount {
            guard let bytes = self.receive() else { return nil }
            self.buffer += bytes
        }
        self.buffer.removeFirst(byteCount)
        return head
    }

    private mutating func readHead() -> [UInt8]? {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let start = self.buffer.indices.first(where: { self.buffer[$0...].starts(with: end) }) {
                let request = Array(self.buffer[..<(start + end.count)])
                self.buffer.removeFirst(request.count)
                return request
            }
            guard let bytes = self.receive() else { return nil }
            self.buffer += bytes
        }
    }

    /// Reads frames until `count` heads have arrived, and returns `false` if the client has left.
    private mutating func readFrames(untilStreams count: Int) -> Bool {
        // The second half of the preface, whose first half ``readRequest()`` reads as a request.
        let preface = Array("SM\r\n\r\n".utf8)
        var missing = count
        while missing > 0 {
            if self.buffer.starts(with: preface) { self.buffer.removeFirst(preface.count) }
            let size = self.buffer.count < 9 ? nil : self.buffer[..<3].reduce(0) { $0 << 8 | Int($1) } + 9
            if let size, self.buffer.count >= size {
                if self.buffer[3] == 1 { missing -= 1 }
                self.buffer.removeFirst(size)
            } else if let bytes = self.receive() {
                self.buffer += bytes
            } else {
                return false
            }
        }
        return true
    }

    private func path(of request: [UInt8]) -> String {
        let line = String(decoding: request.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
        let fields = line.split(separator: " ")
        return fields.count > 1 ? String(fields[1].prefix { $0 != "?" }) : ""
    }
}
