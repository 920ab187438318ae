// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeTestSupport

/// A socket that changes the network by rtnetlink messages, like `ip` (rtnetlink(7)).
final class RouteSocket {
    private static let loopback: UInt32 = 1
    private let descriptor: CInt

    init() throws {
        self.descriptor = socket(AF_NETLINK, CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard self.descriptor >= 0 else { throw TestSupportError("No netlink socket could be opened: errno \(errno).") }
    }

    deinit {
        close(self.descriptor)
    }

    /// Sends RTM_NEWLINK with IFF_UP.
    func bringUpLoopback() throws {
        let up: UInt32 = 1
        // The fields of ifinfomsg are family, padding, type, index, flags, mask of flags.
        try self.send(type: 16, flags: 0, Self.bytes(UInt32(0)) + [Self.loopback, up, up].flatMap(Self.bytes))
    }

    /// Sends RTM_NEWROUTE of the type RTN_LOCAL for all addresses of a family.
    func addLocalDefaultRoute(family: CInt) throws {
        let (tableLocal, protocolBoot, scopeHost, typeLocal) = (UInt8(255), UInt8(3), UInt8(254), UInt8(2))
        // The rtmsg precedes the attribute RTA_OIF.
        let route = [UInt8(family), 0, 0, 0, tableLocal, protocolBoot, scopeHost, typeLocal] + Self.bytes(UInt32(0))
        let interface = Self.bytes(UInt16(8)) + Self.bytes(UInt16(4)) + Self.bytes(Self.loopback)
        try self.send(type: 24, flags: 0x400, route + interface)
    }

    private func send(type: UInt16, flags: UInt16, _ payload: [UInt8]) throws {
        // The flags of nlmsghdr include NLM_F_REQUEST and NLM_F_ACK.
        let header = Self.bytes(UInt32(16 + payload.count)) + Self.bytes(type) + Self.bytes(flags | 5)
        let message = header + Self.bytes(UInt32(1)) + Self.bytes(UInt32(0)) + payload
        guard Glibc.send(self.descriptor, message, message.count, 0) == message.count else {
            throw TestSupportError("A netlink message could not be sent: errno \(errno).")
        }
        var answer = [UInt8](repeating: 0, count: 4096)
        let count = recv(self.descriptor, &answer, answer.count, 0)
        // The nlmsgerr follows the header.
        guard count >= 20 else { throw TestSupportError("The kernel gave no answer to a netlink message.") }
        let code = answer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: Int32.self) }
        guard code == 0 else { throw TestSupportError("The network could not be set up: errno \(-code).") }
    }

    private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value) { Array($0) }
    }
}
