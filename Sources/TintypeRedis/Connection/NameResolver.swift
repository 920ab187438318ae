// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// Looks up the addresses of host names, on a thread of its own: hiredis would block the loop meanwhile.
actor NameResolver {
    private nonisolated let executor = ThreadExecutor(name: "tintype-names")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    deinit {
        self.executor.shutdown()
    }

    /// Returns whether `host` is an IP address, which needs no look-up.
    static func isAddress(_ host: String) -> Bool {
        var address = in6_addr()
        return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
    }

    /// Returns the IP addresses of a host, or the reason for the failure.
    func addresses(of host: String) -> Result<[String], NameError> {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        defer { if let list { freeaddrinfo(list) } }
        guard code == 0 else { return .failure(NameError(message: String(cString: gai_strerror(code)))) }
        var addresses: [String] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ai_next
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let length = socklen_t(text.count)
            let flags = NI_NUMERICHOST
            guard getnameinfo(entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, length, nil, 0, flags) == 0 else {
                continue
            }
            addresses.append(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        return addresses.isEmpty ? .failure(NameError(message: "the name has no address")) : .success(addresses)
    }
}

/// The reason why a name has no address.
struct NameError: Error {
    let message: String
}
