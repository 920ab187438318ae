import CCurl
import Glibc

extension EasyHandle {
    /// Lets the policy of a transfer decide about each socket, when the address to connect it to is known.
    ///
    /// This is after the look-up of the name and before the first packet: what is checked is what is connected to.
    func guardConnections() {
        ccurl_set_opensocket_callback(
            self.easy,
            { context, _, address in
                guard let context, let address, let transfer = EasyHandle.of(context).transfer,
                    transfer.connections.admits(address, policy: transfer.networkPolicy)
                else { return CURL_SOCKET_BAD }
                let kind = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
                return socket(address.pointee.family, kind, address.pointee.protocol)
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }
}
