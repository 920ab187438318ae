// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency
import TintypeTestSupport

/// A web server on ports 80 and 443 of every address, which records the addresses of its connections.
///
/// `/redirect` leads to the location that a test sets, and every other path is an image. The server does not speak TLS,
/// but records connections by `https` as well. Its threads end with the process.
final class EveryAddressOrigin: Sendable {
    private struct State {
        var addresses: [String] = []
        var location = ""
    }

    private let state = Locked(State())
    private let image: [UInt8]

    init() throws {
        self.image = Array(try Fixtures.data("flower.webp"))
        for port in [80, 443] {
            let listener = try Self.listen(port: UInt16(port))
            POSIXThread(name: "accept-\(port)") { [self] in self.accept(listener) }.detach()
        }
    }

    /// Sets the unchanged `Location` of the response to `/redirect`.
    func setLocation(_ location: String) {
        self.state.withLock { $0.location = location }
    }

    /// Returns the addresses of the connections since the last call.
    func takeAddresses() -> [String] {
        self.state.withLock { state in
            defer { state.addresses = [] }
            return state.addresses
        }
    }

    private static func listen(port: UInt16) throws -> CInt {
        let descriptor = socket(AF_INET6, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var off: CInt = 0
        setsockopt(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &off, socklen_t(MemoryLayout<CInt>.size))
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        let isListening = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
        guard isListening, Glibc.listen(descriptor, 511) == 0 else {
            throw TestSupportError("Port \(port) could not be opened: errno \(errno).")
        }
        return descriptor
    }

    private func accept(_ listener: CInt) {
        while true {
            let connection = Glibc.accept(listener, nil, nil)
            guard connection >= 0 else { continue }
            let address = Self.localAddress(of: connection)
            self.state.withLock { $0.addresses.append(address) }
            POSIXThread(name: "serve") { [self] in self.serve(connection) }.detach()
        }
    }

    private func serve(_ connection: CInt) {
        defer { close(connection) }
        var request: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while request.suffix(4) != Array("\r\n\r\n".utf8)[...] {
            let count = recv(connection, &buffer, buffer.count, 0)
            // A client that speaks TLS waits in vain for an answer.
            guard count > 0, (request + buffer[..<count]).first != 0x16 else { return }
            request += buffer[..<count]
        }
        let isRedirect = String(decoding: request, as: UTF8.self).hasPrefix("GET /redirect ")
        let location = self.state.withLock { $0.location }
        let head =
            isRedirect
            ? "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n"
            : "HTTP/1.1 200 OK\r\nContent-Length: \(self.image.count)\r\n"
        let response = Array("\(head)Connection: close\r\n\r\n".utf8) + (isRedirect ? [] : self.image)
        _ = send(connection, response, response.count, CInt(MSG_NOSIGNAL))
        shutdown(connection, CInt(SHUT_WR))
        // Read all bytes before closing, because otherwise the answer could be lost.
        while recv(connection, &buffer, buffer.count, 0) > 0 {}
    }

    private static func localAddress(of connection: CInt) -> String {
        var address = sockaddr_in6()
        var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        _ = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(connection, $0, &length) }
        }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(AF_INET6, &address.sin6_addr, &text, socklen_t(text.count))
        let name = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // IPv4 addresses arrive as IPv4-mapped addresses.
        return name.hasPrefix("::ffff:") ? String(name.dropFirst(7)) : name
    }
}
