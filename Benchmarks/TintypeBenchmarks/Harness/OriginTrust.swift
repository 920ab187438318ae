// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Makes every client trust the certificate of the harness's own origin.
///
/// On Linux, Foundation's sessions trust only the system's authorities. So the harness restarts itself in a mount
/// namespace of its own, where the system's list has one more authority. Other processes do not see it. This requires
/// root. Without root, the harness does not measure sides that cannot be told which authorities to trust.
enum OriginTrust {
    private static let variable = "TINTYPE_BENCHMARKS_CERTIFICATE"
    private static let authorities = "/etc/ssl/certs/ca-certificates.crt"

    /// The folder with `certificate.pem` and `key.pem`, after the restart.
    static var folder: URL? {
        ProcessInfo.processInfo.environment[self.variable].map { URL(fileURLWithPath: $0) }
    }

    /// Restarts the harness if that helps, and otherwise returns.
    static func enter() {
        guard getuid() == 0, self.folder == nil, let folder = try? self.makeFolder(),
            let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        else { return }
        setenv(self.variable, folder.path, 1)
        let script = "mount --bind \"$0\" \(self.authorities); exec \"$@\""
        let bundle = folder.appendingPathComponent("bundle.pem").path
        let arguments =
            ["unshare", "--mount", "/bin/sh", "-c", script, bundle, program] + CommandLine.arguments.dropFirst()
        let pointers = arguments.map { strdup($0) }
        // Returns only if it fails. The harness then continues as without root.
        execv("/usr/bin/unshare", pointers + [nil])
        for pointer in pointers { free(pointer) }
        unsetenv(self.variable)
        try? FileManager.default.removeItem(at: folder)
    }

    /// Removes the folder that `enter` created.
    static func leave() {
        if let folder { try? FileManager.default.removeItem(at: folder) }
    }

    /// Makes a certificate for this machine that vouches for itself.
    static func makeCertificate(in folder: URL) throws {
        let openssl = Process()
        openssl.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        openssl.arguments = [
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout", folder.appendingPathComponent("key.pem").path,
            "-out", folder.appendingPathComponent("certificate.pem").path,
        ]
        openssl.standardError = FileHandle.nullDevice
        try openssl.run()
        openssl.waitUntilExit()
        guard openssl.terminationStatus == 0 else { throw Unavailable("openssl made no certificate") }
    }

    private static func makeFolder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("tintype-benchmarks-trust-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try self.makeCertificate(in: folder)
        let certificate = try Data(contentsOf: folder.appendingPathComponent("certificate.pem"))
        let bundle = try Data(contentsOf: URL(fileURLWithPath: self.authorities)) + certificate
        try bundle.write(to: folder.appendingPathComponent("bundle.pem"))
        return folder
    }
}
