// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A socket that accepts connections.
final class ListeningSocket {
    let descriptor: CInt
    /// The address with the actual port, such as `127.0.0.1:8080` or `[::1]:8080`.
    let address: String

    /// Binds to `address`, such as `127.0.0.1:8080`, `[::1]:0` or `:8080` for all addresses.
    ///
    /// Port 0 picks a free port.
    ///
    /// - Throws: ``ListenError``.
    init(_ address: String) throws(ListenError) {
        let (host, port) = try Self.split(address)
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        // An empty host means all addresses, over IPv4 and IPv6.
        guard getaddrinfo(host.isEmpty ? "::" : host, "\(port)", &hints, &list) == 0, let first = list else {
            throw ListenError(
                "\(address) is not an address to listen on; write one such as 127.0.0.1:8080 or [::1]:8080."
            )
        }
        defer { freeaddrinfo(list) }
        var socket = Self.open(first.pointee)
        if socket < 0, host.isEmpty, errno == EAFNOSUPPORT {
            freeaddrinfo(list)
            list = nil
            if getaddrinfo("0.0.0.0", "\(port)", &hints, &list) == 0, let first = list {
                socket = Self.open(first.pointee)
            }
        }
        guard socket >= 0 else {
            throw ListenError("The server cannot listen on \(address): \(String(cString: strerror(errno))).")
        }
        self.descriptor = socket
        self.address = Self.name(of: socket)
    }

    deinit {
        close(self.descriptor)
    }

    /// Makes room for `count` connections in the table of descriptors, or for fewer if the process's limit is low.
    ///
    /// Without this call, the kernel doubles the table each time it is full. In a process with threads, each growth stops
    /// the loop for about 10 ms. A quarter of the limit, at most 512 descriptors, stays free for files and origins.
    ///
    /// - Returns: The number of connections for which the limit has room.
    func reserveDescriptors(_ count: Int) -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return count }
        let descriptors = Int(clamping: limit.rlim_cur)
        let room = max(1, min(count, descriptors - min(descriptors / 4, 512)))
        let copy = fcntl(self.descriptor, F_DUPFD_CLOEXEC, CInt(clamping: room - 1))
        if copy >= 0 { close(copy) }
        return room
    }

    /// Whether `address` can be reached from this machine only.
    static func isLoopback(_ address: String) throws(ListenError) -> Bool {
        let host = try self.split(address).host
        return host.hasPrefix("127.") || host == "::1"
    }

    private static func split(_ address: String) throws(ListenError) -> (host: String, port: UInt16) {
        let example = "write an address such as 127.0.0.1:8080 or [::1]:8080."
        guard let colon = address.lastIndex(of: ":"),
            case let digits = address[address.index(after: colon)...].utf8,
            !digits.isEmpty, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { throw ListenError("\(address) has no port; \(example)") }
        guard let port = UInt16(Substring(digits)) else {
            throw ListenError("The port of \(address) is over 65535; \(example)")
        }
        var host = String(address[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            throw ListenError("\(address) is ambiguous; write an IPv6 address in brackets, such as [::1]:8080.")
        }
        return (host == "localhost" ? "127.0.0.1" : host, port)
    }

    /// Returns a listening socket, or -1 with errno set.
    private static func open(_ info: addrinfo) -> CInt {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let socket = Glibc.socket(info.ai_family, type, 0)
        guard socket >= 0 else { return -1 }
        var (yes, no): (CInt, CInt) = (1, 0)
        let size = socklen_t(MemoryLayout<CInt>.size)
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, size)
        // Connections inherit this limit. Without it, the kernel buffers megabytes for a client that never reads.
        var unsentByteCount: CInt = 128 << 10
        setsockopt(socket, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &unsentByteCount, size)
        if info.ai_family == AF_INET6 { setsockopt(socket, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &no, size) }
        guard bind(socket, info.ai_addr, info.ai_addrlen) == 0, listen(socket, 65_535) == 0 else {
            let code = errno
            close(socket)
            errno = code
            return -1
        }
        return socket
    }

    /// Returns the bound address as text.
    private static func name(of socket: CInt) -> String {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var host = [CChar](repeating: 0, count: 64)
        var port = [CChar](repeating: 0, count: 16)
        withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = getsockname(socket, address, &size)
                _ = getnameinfo(address, size, &host, 64, &port, 16, NI_NUMERICHOST | NI_NUMERICSERV)
            }
        }
        func text(_ bytes: [CChar]) -> String {
            String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        let name = text(host)
        return (name.contains(":") ? "[\(name)]" : name) + ":" + text(port)
    }
}

/// The reason why a server cannot listen.
public struct ListenError: Error, CustomStringConvertible {
    /// The reason and the remedy, in full sentences.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
