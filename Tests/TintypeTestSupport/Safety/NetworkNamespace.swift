import FoundationEssentials
import Glibc
import TintypeConcurrency

/// Runs a program of this package that makes a network namespace for itself.
public enum NetworkNamespace {
    private static let unshare = "/usr/bin/unshare"
    /// A process that is not root may still be it in a user namespace of its own, where the system allows those.
    private static let asRoot = geteuid() == 0 ? [] : [Self.unshare, "--user", "--map-root-user", "--"]

    /// Whether this process may make namespaces; tried once, because containers differ.
    public static let isPossible: Bool = {
        guard access(Self.unshare, X_OK) == 0, let folder = try? TemporaryDirectory() else { return false }
        // Mounting is what is forbidden most often.
        let trial = [Self.unshare, "--net", "--mount", "--", "/bin/sh", "-c", "mount --bind /etc/hosts /etc/hosts"]
        return (try? ChildProcess.run(Self.asRoot + trial, log: folder.path(of: "log"))) != nil
    }()

    /// What a built program prints, once it has ended; throws unless it exits with 0.
    public static func run(_ program: String, _ arguments: [String]) async throws -> String {
        let folder = try TemporaryDirectory(prefix: "tintype-namespace")
        let log = folder.path(of: "log")
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        // Programs are built into the folder of the tests.
        let path = URL(filePath: tests).deletingLastPathComponent().appending(path: program).path
        let command = Self.asRoot + [path] + arguments
        return try await withCheckedThrowingContinuation { continuation in
            POSIXThread(name: "namespace") {
                let result = Result {
                    defer { _ = folder }
                    do {
                        try ChildProcess.run(command, log: log)
                    } catch {
                        throw TestSupportError("\(error) It printed: \(Self.text(of: log).suffix(2000))")
                    }
                    return Self.text(of: log)
                }
                continuation.resume(with: result)
            }.detach()
        }
    }

    private static func text(of path: String) -> String {
        String(decoding: (try? Data(contentsOf: URL(filePath: path))) ?? Data(), as: UTF8.self)
    }
}
