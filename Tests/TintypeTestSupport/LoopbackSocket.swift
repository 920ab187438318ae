// SPDX-License-Identifier: Apache-2.0

import Glibc

/// TCP sockets on 127.0.0.1, as the origins use them.
public enum LoopbackSocket {
    /// Returns a port of 127.0.0.1 that is free now, for a server that opens its port by itself.
    public static func freePort() throws -> Int {
        let (descriptor, port) = try self.listen()
        close(descriptor)
        return port
    }

    /// Returns a free port, and a socket that keeps other sockets from it until it is closed.
    ///
    /// Clients are refused, because the socket does not listen. A server with `SO_REUSEADDR`, such as Redis, can still
    /// open the port.
    static func reservePort() throws -> (descriptor: CInt, port: Int) {
        let descriptor = try self.make()
        var isReusable: CInt = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReusable, socklen_t(MemoryLayout<CInt>.size))
        var address = self.address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && getsockname(descriptor, address, &length) == 0
            }
        }
        guard isBound else {
            let code = errno
            close(descriptor)
            throw TestSupportError("No port could be reserved: errno \(code).")
        }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Returns a socket that listens on a free port.
    ///
    /// The socket listens before this method returns, so a client that connects at once is never refused.
    static func listen(address text: String = "127.0.0.1", backlog: CInt = 511) throws -> (descriptor: CInt, port: Int)
    {
        let descriptor = try self.make()
        var address = self.address(port: 0)
        address.sin_addr.s_addr = inet_addr(text)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && Glibc.listen(descriptor, backlog) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        guard isListening else {
            let code = errno
            close(descriptor)
            throw TestSupportError("No port of \(text) could be opened: errno \(code).")
        }
        // nginx expects that an inherited port does not block.
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// Returns a connection to a port of this machine, whose reads time out after ten seconds.
    static func connect(port: Int) throws -> CInt {
        let descriptor = try self.make()
        var address = self.address(port: port)
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                Glibc.connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            let code = errno
            close(descriptor)
            throw TestSupportError("127.0.0.1:\(port) could not be reached: errno \(code).")
        }
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }

    /// Sends all bytes, or returns `false` if the other side has closed the connection.
    public static func send(_ bytes: [UInt8], to descriptor: CInt) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Returns at most 16 KiB of received bytes, or `nil` if the other side has closed the connection.
    static func receive(from descriptor: CInt) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count < 0 && errno == EINTR { continue }
            return count > 0 ? Array(buffer[..<count]) : nil
        }
    }

    private static func make() throws -> CInt {
        // Set close-on-exec from the start, because another test may start a process at any time.
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(AF_INET, type, 0)
        guard descriptor >= 0 else { throw TestSupportError("No socket could be opened: errno \(errno).") }
        return descriptor
    }

    private static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return address
    }
}
