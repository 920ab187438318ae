// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TintypeTestTraits

@testable import TintypeDownloading

/// Finds the socket of a connection by the addresses of its ends.
@Suite(.waiting, .timeLimit(.minutes(1))) struct SocketNamesTests {
    /// Two sockets with the same local address and remote port, connected to 127.0.0.1 and to 127.0.0.2.
    private final class Pair {
        private let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let sockets = (0..<2).map { _ in socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0) }
        private(set) var localPort = 0
        private(set) var remotePort = 0

        init() throws {
            self.remotePort = try Self.call(bind, self.listener, INADDR_ANY, port: 0)
            try #require(listen(self.listener, 2) == 0)
            for (descriptor, host) in zip(self.sockets, INADDR_LOOPBACK...) {
                var on: CInt = 1
                setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<CInt>.size))
                self.localPort = try Self.call(bind, descriptor, INADDR_LOOPBACK, port: self.localPort)
                try Self.call(connect, descriptor, host, port: self.remotePort)
            }
        }

        deinit {
            for descriptor in self.sockets + [self.listener] { close(descriptor) }
        }

        /// Binds or connects a socket, and returns its own port.
        @discardableResult
        private static func call(
            _ function: (CInt, UnsafePointer<sockaddr>?, socklen_t) -> CInt,
            _ descriptor: CInt,
            _ host: UInt32,
            port: Int
        ) throws -> Int {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = host.bigEndian
            address.sin_port = UInt16(port).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            return try withUnsafeMutablePointer(to: &address) {
                try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                    try #require(function(descriptor, address, length) == 0)
                    try #require(getsockname(descriptor, address, &length) == 0)
                }
                return Int(UInt16(bigEndian: $0.pointee.sin_port))
            }
        }
    }

    @Test func `sockets with the same ports are told apart by the address of the other end`() throws {
        let pair = try Pair()
        var names = SocketNames()
        for descriptor in pair.sockets { names.didOpen(descriptor) }
        func found(_ remoteAddress: String?, remotePort: Int) -> [CInt] {
            guard let remoteAddress else {
                return names.descriptors(
                    localPort: pair.localPort,
                    remotePort: remotePort,
                    remoteAddress: nil,
                    isNew: true
                )
            }
            return names.descriptors(
                localPort: pair.localPort,
                remotePort: remotePort,
                remoteAddress: remoteAddress,
                isNew: true
            )
        }
        #expect(found("127.0.0.1", remotePort: pair.remotePort) == [pair.sockets[0]])
        #expect(found("127.0.0.2", remotePort: pair.remotePort) == [pair.sockets[1]])
        // Both sockets are candidates if libcurl reports another address or none.
        #expect(found("127.0.0.3", remotePort: pair.remotePort) == pair.sockets)
        #expect(found("", remotePort: pair.remotePort) == pair.sockets)
        #expect(found(nil, remotePort: pair.remotePort) == pair.sockets)
        #expect(found("127.0.0.1", remotePort: 1) == pair.sockets)
        names.willClose(pair.sockets[0])
        #expect(found("127.0.0.1", remotePort: pair.remotePort) == [pair.sockets[1]])
    }

    @Test func `a connection is shared although another one has the same ports`() throws {
        let pair = try Pair()
        let poll = try SocketPoll()
        for descriptor in pair.sockets { poll.didOpen(descriptor) }
        for (index, address) in ["127.0.0.1", "127.0.0.2"].enumerated() {
            let descriptor = poll.share(
                localPort: pair.localPort,
                remotePort: pair.remotePort,
                remoteAddress: address,
                isNew: true
            )
            #expect(descriptor == pair.sockets[index])
        }
    }
}
