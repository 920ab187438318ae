// SPDX-License-Identifier: Apache-2.0

import CTintypeCrypto
import Glibc

/// The server's side of TLS on a connection of a ``FaultyOrigin``.
final class FaultyTLS {
    private let context: OpaquePointer
    private let session: OpaquePointer

    /// Performs the handshake, and returns `nil` if it fails.
    init?(_ descriptor: CInt, authority: TLSCertificates, speaksHTTP2: Bool) {
        guard let context = SSL_CTX_new(TLS_server_method()) else { return nil }
        let folder = authority.folder
        guard SSL_CTX_use_certificate_file(context, folder.path(of: "valid.pem"), SSL_FILETYPE_PEM) == 1,
            SSL_CTX_use_PrivateKey_file(context, folder.path(of: "server.key"), SSL_FILETYPE_PEM) == 1,
            let session = SSL_new(context)
        else {
            SSL_CTX_free(context)
            return nil
        }
        if speaksHTTP2 { Self.offerHTTP2(context) }
        self.context = context
        self.session = session
        // OpenSSL uses `write`, and SIGPIPE would end the process if the client has left.
        signal(SIGPIPE, SIG_IGN)
        SSL_set_fd(session, descriptor)
        guard SSL_accept(session) == 1 else { return nil }
    }

    deinit {
        SSL_free(self.session)
        SSL_CTX_free(self.context)
    }

    /// Chooses `h2` if the client offers it, whatever the client prefers.
    private static func offerHTTP2(_ context: OpaquePointer) {
        SSL_CTX_set_alpn_select_cb(
            context,
            { _, chosen, length, offered, count, _ in
                guard let chosen, let length, let offered else { return SSL_TLSEXT_ERR_NOACK }
                var start = 0
                while start < Int(count) {
                    if offered[start] == 2, offered[start + 1] == UInt8(ascii: "h") {
                        chosen.pointee = offered + start + 1
                        length.pointee = 2
                        return SSL_TLSEXT_ERR_OK
                    }
                    start += Int(offered[start]) + 1
                }
                return SSL_TLSEXT_ERR_NOACK
            },
            nil
        )
    }

    func send(_ bytes: [UInt8]) -> Bool {
        bytes.isEmpty || SSL_write(self.session, bytes, CInt(bytes.count)) == bytes.count
    }

    func receive() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        let count = SSL_read(self.session, &buffer, CInt(buffer.count))
        return count > 0 ? Array(buffer[..<Int(count)]) : nil
    }

    func sendCloseAlert() {
        SSL_shutdown(self.session)
    }

    func sendTickets(_ count: Int) -> Bool {
        for _ in 0..<count {
            guard SSL_new_session_ticket(self.session) == 1, SSL_do_handshake(self.session) == 1 else { return false }
        }
        return true
    }
}
