// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeConcurrency

/// Runs a program of this package that creates a network namespace for itself.
public enum NetworkNamespace {
    private static let unshare = "/usr/bin/unshare"
    /// The command that makes a process root in its own user namespace, if the system allows that.
    private static let asRoot = geteuid() == 0 ? [] : [Self.unshare, "--user", "--map-root-user", "--"]

    /// Whether this process may create namespaces, which depends on the container and is tried once.
    public static let isPossible: Bool = {
        guard access(Self.unshare, X_OK) == 0, let folder = try? TemporaryDirectory() else { return false }
        // Try to mount, because systems forbid this most often.
        let trial = [Self.unshare, "--net", "--mount", "--", "/bin/sh", "-c", "mount --bind /etc/hosts /etc/hosts"]
        return (try? ChildProcess.run(Self.asRoot + trial, log: folder.path(of: "log"))) != nil
    }()

    /// Returns the output of a built program after it has ended, and throws if its exit status is not 0.
    public static func run(_ program: String, _ arguments: [String]) async throws -> String {
        let folder = try TemporaryDirectory(prefix: "tintype-namespace")
        let log = folder.path(of: "log")
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        // The package's programs are in the folder of the test program.
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
