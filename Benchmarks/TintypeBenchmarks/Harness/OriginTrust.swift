import Foundation

/// Makes every client trust the certificate of the harness' own origin.
///
/// Foundation's sessions trust what the system trusts and nothing else on Linux. So the harness starts itself
/// anew in a mount namespace of its own, in which the system's list of authorities has one more. Nothing
/// outside sees it. That takes root; without it the sides that can't be told which authorities to trust are not measured.
enum OriginTrust {
    private static let variable = "TINTYPE_BENCHMARKS_CERTIFICATE"
    private static let authorities = "/etc/ssl/certs/ca-certificates.crt"

    /// The folder with `certificate.pem` and `key.pem`, once this is the second start.
    static var folder: URL? {
        ProcessInfo.processInfo.environment[self.variable].map { URL(fileURLWithPath: $0) }
    }

    /// Starts the harness anew where that helps; returns where it does not.
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
        // Returns only when it fails; then everything goes on as without root.
        execv("/usr/bin/unshare", pointers + [nil])
        for pointer in pointers { free(pointer) }
        unsetenv(self.variable)
        try? FileManager.default.removeItem(at: folder)
    }

    /// Removes what `enter` has made.
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
