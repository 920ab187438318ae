// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// The certificates of ``TLSOrigin``, which all origins that live at the same time share.
///
/// Creating them takes several runs of openssl, which would delay other tests.
final class TLSCertificates: Sendable {
    private struct Weak {
        weak var value: TLSCertificates?
    }

    private static let last = Locked(Weak())

    let folder: TemporaryDirectory

    /// Returns the certificates that are in use, or creates new ones.
    static func shared() throws -> TLSCertificates {
        try self.last.withLock { last in
            if let value = last.value { return value }
            let value = try TLSCertificates()
            last.value = value
            return value
        }
    }

    var authorityPath: String { self.folder.path(of: "authority.pem") }

    private init() throws {
        _ = try Program.path(of: "openssl", package: "openssl")
        self.folder = try TemporaryDirectory(prefix: "tintype-certificates")
        try ChildProcess.run(
            ["/bin/sh", "-c", Self.script(self.folder.path)],
            log: self.folder.path(of: "openssl.log")
        )
    }

    private static func script(_ folder: String) -> String {
        """
        set -e
        cd '\(folder)'
        key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        here=subjectAltName=DNS:localhost,IP:127.0.0.1
        openssl req -x509 $key -days 2 -subj /CN=authority -keyout authority.key -out authority.pem
        openssl req $key -subj /CN=localhost -addext $here -keyout server.key -out server.csr
        openssl req -new -key server.key -subj /CN=other -addext subjectAltName=DNS:other.example -out other.csr
        sign="openssl x509 -req -CA authority.pem -CAkey authority.key -copy_extensions copy"
        $sign -in server.csr -set_serial 1 -days 2 -out valid.pem
        $sign -in server.csr -set_serial 2 -days -1 -out expired.pem
        $sign -in other.csr -set_serial 3 -days 2 -out wrongHost.pem
        openssl x509 -req -in server.csr -signkey server.key -days 2 -copy_extensions copy -out selfSigned.pem
        openssl req $key -subj /CN=client -keyout client.key -out client.csr
        $sign -in client.csr -set_serial 4 -days 2 -out client.pem
        openssl pkey -in server.key -pubout -outform der | openssl dgst -sha256 -binary | openssl base64 > pin
        """
    }
}
