import Glibc

/// Finds the socket of a connection by the ports that libcurl tells before it sends a request.
///
/// libcurl 7.88 has no other way: `CURLINFO_ACTIVESOCKET` is the socket of the handle's last transfer until the
/// next one is over.
struct SocketNames {
    private var byLocalPort: [Int: [CInt]] = [:]
    private var localPorts: [CInt: Int] = [:]
    /// Those that were not asked for their port yet: they have it once they connect.
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

    /// The sockets that a connection may have: one, but for Unix-domain sockets, which have no ports.
    mutating func descriptors(localPort: Int, remotePort: Int, isNew: Bool) -> [CInt] {
        if isNew { self.nameAll() }
        guard let found = self.byLocalPort[localPort] else { return [] }
        guard found.count > 1, localPort != 0 else { return found }
        // The kernel gives a port out again for connections to other places.
        let exact = found.filter { Self.port(of: $0, getpeername) == remotePort }
        return exact.isEmpty ? found : exact
    }

    private mutating func nameAll() {
        self.unnamed.removeAll { descriptor in
            let port = Self.port(of: descriptor, getsockname)
            // Those of others in between are not connected yet.
            if port == 0 { return false }
            self.byLocalPort[port ?? 0, default: []].append(descriptor)
            self.localPorts[descriptor] = port ?? 0
            return true
        }
    }

    private static func port(
        of descriptor: CInt,
        _ name: (CInt, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> CInt
    ) -> Int? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes -> Int? in
            guard let start = bytes.baseAddress,
                name(descriptor, start.assumingMemoryBound(to: sockaddr.self), &length) == 0
            else { return nil }
            switch CInt(bytes.load(as: sa_family_t.self)) {
            // The port has the same place in both.
            case AF_INET, AF_INET6: return Int(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
            default: return nil
            }
        }
    }
}
