// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// A child process that has stopped itself with `SIGSTOP`.
public final class StoppedProcess: Sendable {
    public let number: pid_t

    /// Starts a program, and returns when it has stopped itself.
    public init(_ program: String, _ arguments: [String]) throws {
        let texts: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for text in texts { free(text) } }
        var process = pid_t()
        let code = posix_spawn(&process, program, nil, nil, texts, environ)
        guard code == 0 else { throw TestSupportError("no child: errno \(code)") }
        self.number = process
        var status: CInt = 0
        while waitpid(process, &status, CInt(WUNTRACED)) < 0, errno == EINTR {}
        guard status & 0xFF == 0x7F else { throw TestSupportError("the child ended: \(status)") }
    }

    /// Continues the process and waits for its end.
    public func finish() {
        kill(self.number, SIGCONT)
        var status: CInt = 0
        while waitpid(self.number, &status, 0) < 0, errno == EINTR {}
    }

    deinit {
        kill(self.number, SIGKILL)
        var status: CInt = 0
        while waitpid(self.number, &status, 0) < 0, errno == EINTR {}
    }
}
