// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds the socket of a connection by the ports that libcurl tells before it sends a request.
///
/// libcurl 7.88 has no other way: `CURLINFO_ACTIVESOCKET` is the socket of the handle's last transfer until the
/// next one is over.
struct SocketNames {
    private var byLocalPort: [Int: [CInt]] = [:]
    private var localPorts: [CInt: Int] = [:]
    /// The sockets without a known port: they get it when they connect.
    private var unnamed: [CInt] = []

    mutating func didOpen(_ descriptor: CInt) {
        self.willClose(descriptor)
        self.unnamed.append(descriptor)
    }

    mutating func willClose(_ descriptor: CInt) {
        if let port = self.localPorts.removeValue(forKey: descriptor) {
            self.byLocalPort[port]?.removeAll { $0 == descriptor }
            if self.byLocalPort[port]?.isEmpty ?? false { self.byLocalPort[port] = nil }
        } else {
            self.unnamed.removeAll { $0 == descriptor }
        }
    }

    /// The sockets that a connection may have: one, except for Unix-domain sockets, which have no ports.
    ///
    /// `remoteAddress` is the address of the other end in words, as libcurl gives it.
    mutating func descriptors(
        localPort: Int,
        remotePort: Int,
        remoteAddress: UnsafePointer<CChar>?,
        isNew: Bool
    ) -> [CInt] {
        if isNew { self.nameAll() }
        guard let found = self.byLocalPort[localPort] else { return [] }
        guard found.count > 1, localPort != 0 else { return found }
        // The kernel gives a port out again for connections to other places.
        let remote = Endpoint(address: remoteAddress.flatMap { IPAddress(String(cString: $0)) }, port: remotePort)
        let ends = found.map { ($0, Endpoint(of: $0, getpeername)) }
        for isMeant in [{ $0 == remote }, { $0.port == remotePort }] as [(Endpoint) -> Bool] {
            let meant = ends.filter { _, end in end.map(isMeant) ?? false }
            if !meant.isEmpty { return meant.map { $0.0 } }
        }
        return found
    }

    private mutating func nameAll() {
        self.unnamed.removeAll { descriptor in
            let port = Endpoint(of: descriptor, getsockname)?.port
            // Other sockets in between are not connected yet.
            if port == 0 { return false }
            self.byLocalPort[port ?? 0, default: []].append(descriptor)
            self.localPorts[descriptor] = port ?? 0
            return true
        }
    }
}

/// One end of a connection.
private struct Endpoint: Equatable {
    let address: IPAddress?
    let port: Int

    init(address: IPAddress?, port: Int) {
        self.address = address
        self.port = port
    }

    /// Asks the kernel for an end of a socket; `nil` if it has no port.
    init?(
        of descriptor: CInt,
        _ name: (CInt, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> CInt
    ) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let end = withUnsafeMutableBytes(of: &storage) { bytes -> (IPAddress, Int)? in
            guard let start = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                name(descriptor, start, &length) == 0, let address = IPAddress(start, length: Int(length))
            else { return nil }
            // The port has the same place in both families.
            return (address, Int(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))))
        }
        guard let end else { return nil }
        (self.address, self.port) = end
    }
}
