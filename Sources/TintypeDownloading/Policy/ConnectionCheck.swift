// SPDX-License-Identifier: Apache-2.0

import CTintypeCurl
import CTintypeShims
import Glibc

/// The check of the addresses to which libcurl connects for one request, after the look-up of the name, and its results.
struct ConnectionCheck {
    /// Whether connections lead to a proxy that the program chose, so that their address says nothing about the host.
    private let leadsToProxy: Bool
    private var firstDenial: AddressDenial?
    private var hasAllowedAddress = false
    /// The `errno` with which the system refused a socket.
    var socketRefusal: CInt?
    /// The status of a proxy's answer to the last CONNECT; 0 without an answer.
    var tunnelStatus = 0

    init(leadsToProxy: Bool = false) {
        self.leadsToProxy = leadsToProxy
    }

    /// The reason why no connection was made, if the policy alone is the reason.
    ///
    /// A host may have several addresses. A denied one matters only if the policy allows no other.
    var denial: AddressDenial? { self.hasAllowedAddress ? nil : self.firstDenial }

    /// Whether `policy` lets a socket be connected to the address for a request to `target`.
    ///
    /// A connection that an exception permits is used for no other scheme, host and port: libcurl keeps them apart.
    /// The path of a Unix-domain socket never comes from a URL: it is as allowed as the code that gives it.
    mutating func admits(
        _ address: UnsafePointer<curl_sockaddr>,
        policy: NetworkPolicy,
        target: ResourceAddress
    ) -> Bool {
        guard policy.restrictsAddresses, !self.leadsToProxy, address.pointee.family != AF_UNIX else { return true }
        // libcurl keeps more bytes there than the type of the field has: read them in place.
        guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return false }
        let socketAddress = UnsafeRawPointer(address).advanced(by: offset).assumingMemoryBound(to: sockaddr.self)
        // A family that is not known cannot be judged.
        guard let ip = IPAddress(socketAddress, length: Int(address.pointee.addrlen)) else { return false }
        guard let denial = policy.denial(of: ip, under: policy.permission(for: target)) else {
            self.hasAllowedAddress = true
            return true
        }
        self.firstDenial = self.firstDenial ?? denial
        return false
    }

    /// Whether `policy` lets a request to `target` go over a connection that leads to this address.
    func admitsReuse(
        _ remoteAddress: UnsafePointer<CChar>?,
        policy: NetworkPolicy,
        target: ResourceAddress,
        isLocalSocket: Bool
    ) -> Bool {
        guard policy.restrictsAddresses, !self.leadsToProxy, !isLocalSocket else { return true }
        guard let remoteAddress, let ip = IPAddress(String(cString: remoteAddress)) else { return false }
        return policy.denial(of: ip, under: policy.permission(for: target)) == nil
    }
}

extension EasyHandle {
    /// Lets the policy of a transfer decide about each socket, when the address to connect it to is known.
    ///
    /// This is after the look-up of the name and before the first packet: what is checked is what is connected to.
    func guardConnections() {
        ccurl_set_opensocket_callback(
            self.easy,
            { context, _, address in
                guard let context, let address else { return CURL_SOCKET_BAD }
                let handle = EasyHandle.of(context)
                guard let transfer = handle.transfer,
                    handle.connections.admits(
                        address,
                        policy: transfer.outgoing.networkPolicy,
                        target: transfer.address
                    )
                else { return CURL_SOCKET_BAD }
                let kind = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
                let descriptor = socket(address.pointee.family, kind, address.pointee.protocol)
                if descriptor < 0 {
                    handle.connections.socketRefusal = errno
                } else if cshims_has_descriptors(0) == 0 {
                    handle.connections.socketRefusal = EMFILE
                    close(descriptor)
                    return CURL_SOCKET_BAD
                }
                return descriptor
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }
}
