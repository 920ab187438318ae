import CCurl
import CShims
import Glibc

extension EasyHandle {
    /// The descriptors that a connection leaves to others.
    ///
    /// The runtime opens one now and then to see which of its threads run, and ends the process where it can't.
    private static let spareDescriptors: CInt = 4

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
                    handle.connections.admits(address, policy: transfer.networkPolicy)
                else { return CURL_SOCKET_BAD }
                let kind = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
                let descriptor = socket(address.pointee.family, kind, address.pointee.protocol)
                if descriptor < 0 {
                    handle.connections.socketRefusal = errno
                } else if cshims_has_descriptors(EasyHandle.spareDescriptors) == 0 {
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
