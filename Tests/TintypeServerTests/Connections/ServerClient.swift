// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency
import TintypeHTTP
import TintypeTestSupport

/// A client with a blocking socket on a thread of its own, so that tests never block the cooperative pool.
actor ServerClient {
    private let executor: ThreadExecutor
    private let ownsExecutor: Bool
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private let descriptor: CInt
    /// The bytes that were received and not read as a response.
    private var input: [UInt8] = []
    private var isClosed = false

    /// Connects to `address`, such as `127.0.0.1:8080`.
    ///
    /// - Parameters:
    ///   - address: The address of the server.
    ///   - source: The address of the client, one of 127.0.0.0/8.
    ///   - executor: The thread of several clients, which must not wait for each other.
    ///   - bufferSize: The size of the kernel's buffer for received bytes, for clients that read slowly.
    ///   - patience: The longest wait for bytes in seconds.
    /// - Throws: An error if the server cannot be reached.
    init(
        to address: String,
        from source: String = "127.0.0.1",
        on executor: ThreadExecutor? = nil,
        bufferSize: CInt? = nil,
        patience: Int = 60
    ) async throws {
        self.ownsExecutor = executor == nil
        self.executor = executor ?? ThreadExecutor(name: "client")
        self.descriptor = try Self.connect(to: address, from: source, bufferSize, patience)
    }

    deinit {
        if !self.isClosed { Glibc.close(self.descriptor) }
        if self.ownsExecutor { self.executor.shutdown() }
    }

    private static func connect(
        to address: String,
        from source: String,
        _ bufferSize: CInt?,
        _ patience: Int
    ) throws -> CInt {
        guard let port = address.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw TestSupportError("\(address) has no port")
        }
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw TestSupportError("No socket could be opened: errno \(errno).") }
        if var bufferSize {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bufferSize, socklen_t(MemoryLayout<CInt>.size))
        }
        let (own, other) = (self.place(source, port: 0), self.place("127.0.0.1", port: port))
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        func with(_ place: sockaddr_in, _ call: (UnsafePointer<sockaddr>) -> CInt) -> CInt {
            withUnsafePointer(to: place) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0) } }
        }
        guard with(own, { bind(descriptor, $0, size) }) == 0, with(other, { Glibc.connect(descriptor, $0, size) }) == 0
        else {
            let code = errno
            Glibc.close(descriptor)
            throw TestSupportError("\(address) could not be reached: errno \(code).")
        }
        var (limit, yes) = (timeval(tv_sec: patience, tv_usec: 0), CInt(1))
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<CInt>.size))
        return descriptor
    }

    private static func place(_ address: String, port: UInt16) -> sockaddr_in {
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = port.bigEndian
        place.sin_addr.s_addr = inet_addr(address)
        return place
    }

    // MARK: Sending

    /// Sends text; returns false if the server has closed the connection.
    @discardableResult
    func send(_ text: String) -> Bool { self.send(Array(text.utf8)) }

    /// Sends bytes; returns false if the server has closed the connection.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool { LoopbackSocket.send(bytes, to: self.descriptor) }

    /// Sends a request without a body.
    @discardableResult
    func request(_ target: String, method: String = "GET", _ fields: HeaderFields = [:]) -> Bool {
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return self.send("\(method) \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(lines)\r\n")
    }

    /// Sends bytes one by one until the server answers or closes the connection, and returns the number sent.
    func drip(_ bytes: [UInt8], milliseconds: CInt) -> Int {
        for (index, byte) in bytes.enumerated() {
            guard self.send([byte]), !self.hasInput(within: milliseconds) else { return index + 1 }
        }
        return bytes.count
    }

    /// Sends the same bytes again and again until the server closes the connection; returns the number of bytes.
    func flood(_ bytes: [UInt8]) -> Int {
        var count = 0
        while self.send(bytes) { count += bytes.count }
        return count
    }

    // MARK: Receiving

    /// Sends a request, and returns the response.
    func response(
        to target: String,
        method: String = "GET",
        _ fields: HeaderFields = [:]
    ) throws -> ClientResponse {
        guard self.request(target, method: method, fields) else { throw TestSupportError("The connection is closed.") }
        return try self.receive(isHead: method == "HEAD")
    }

    /// Returns the next response, whose body has the length that its head names.
    func receive(isHead: Bool = false) throws -> ClientResponse {
        while true {
            if let head = ClientResponseHead(self.input) {
                let hasBody = !isHead && head.status >= 200 && head.status != 204 && head.status != 304
                let length = hasBody ? Int(head.fields.values(for: "Content-Length").first ?? "") ?? 0 : 0
                self.input.removeFirst(head.byteCount)
                while self.input.count < length {
                    guard self.read() else { throw TestSupportError("The body ends after \(self.input.count) bytes.") }
                }
                let body = Array(self.input.prefix(length))
                self.input.removeFirst(length)
                return ClientResponse(status: head.status, fields: head.fields, body: body)
            }
            guard self.read() else {
                throw TestSupportError("The connection ended with: \(String(decoding: self.input, as: UTF8.self))")
            }
        }
    }

    /// Returns the bytes until the server closes the connection.
    ///
    /// - Throws: An error if it stays open for longer than the client's patience.
    func receiveToEnd() throws -> [UInt8] {
        while self.read() {}
        guard errno != EAGAIN else { throw TestSupportError("The server keeps the connection open.") }
        return self.input
    }

    /// Returns the text until the server closes the connection, or until the client's patience ends.
    func receiveWhatComes() -> (bytes: [UInt8], isClosed: Bool) {
        while self.read() {}
        return (self.input, errno != EAGAIN)
    }

    /// Whether there are bytes, or the end of the connection, within a time.
    private func hasInput(within milliseconds: CInt) -> Bool {
        var source = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&source, 1, milliseconds) == 1
    }

    /// Receives bytes; returns false at the end of the connection.
    private func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while true {
            errno = 0
            let count = recv(self.descriptor, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            self.input += buffer[..<count]
            return true
        }
    }

    // MARK: End

    /// Sends nothing more, but still receives.
    func halfClose() {
        Glibc.shutdown(self.descriptor, CInt(SHUT_WR))
    }

    /// Closes the connection in an orderly way, or with a reset.
    func close(resetting: Bool = false) {
        guard !self.isClosed else { return }
        self.isClosed = true
        var end = linger(l_onoff: resetting ? 1 : 0, l_linger: 0)
        setsockopt(self.descriptor, SOL_SOCKET, SO_LINGER, &end, socklen_t(MemoryLayout<linger>.size))
        Glibc.close(self.descriptor)
    }
}
