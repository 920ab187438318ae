// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeConcurrency
import TintypeTestSupport

/// A running `tintype`.
final class CommandProcess: Sendable {
    /// The path of the built command, which is in the folder of the test program.
    static let path: String = {
        let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(filePath: tests).deletingLastPathComponent().appending(path: "tintype").path
    }()

    let id: pid_t
    private let state = Locked(State())

    private struct State {
        var code: CInt?
        var peakBytes = 0
        var waiters: [CheckedContinuation<CInt, Never>] = []
    }

    /// Starts the command with files or a terminal as its three standard streams.
    ///
    /// If the files are a terminal, it controls the process. `prelude` has commands for the shell that becomes the
    /// command, and they may change the arguments as well.
    init(
        _ arguments: [String],
        in folder: TemporaryDirectory,
        files: [String],
        isTerminal: Bool = false,
        prelude: String = ":"
    ) throws {
        try FileManager.default.createDirectory(
            atPath: folder.path(of: "streams"),
            withIntermediateDirectories: true
        )
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (index, file) in files.enumerated() {
            let mode = isTerminal ? O_RDWR : index == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC
            posix_spawn_file_actions_addopen(&actions, CInt(index), file, mode, 0o644)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Threads of the cooperative pool block signals, and the program would inherit that.
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        // The program must not inherit the tests' ignored signals either.
        var broken = sigset_t()
        sigemptyset(&broken)
        sigaddset(&broken, SIGPIPE)
        sigaddset(&broken, SIGHUP)
        posix_spawnattr_setsigdefault(&attributes, &broken)
        // With POSIX_SPAWN_SETSID, the first terminal that the process opens becomes its controlling terminal.
        let newSession: CInt = 0x80
        let flags = CInt(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | (isTerminal ? newSession : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        let environment = [
            "HOME=\(folder.path)", "XDG_CACHE_HOME=\(folder.path)/cache", "PATH=/usr/bin:/bin", "TERM=xterm",
            // The address sanitizer reports objects behind weak references as leaks, as in the tests themselves.
            "ASAN_OPTIONS=detect_leaks=0",
        ]
        var id = pid_t()
        // The shell changes to the folder, runs the prelude, and becomes the command.
        let shell = ["/bin/bash", "-c", "cd \"$0\" && \(prelude) && exec \"$@\"", folder.path, Self.path]
        let code = withCStrings(shell + arguments) { arguments in
            withCStrings(environment) { posix_spawn(&id, shell[0], &actions, &attributes, arguments, $0) }
        }
        guard code == 0 else { throw TestSupportError("\(Self.path) did not start: errno \(code)") }
        self.id = id
        POSIXThread(name: "wait") { [self] in self.reap() }.detach()
    }

    deinit {
        // Do not leave the command running if the test failed before its end.
        if self.state.withLock({ $0.code }) == nil { kill(self.id, SIGKILL) }
    }

    /// Waits until the command has ended, and returns its exit code, or minus the number of the signal that ended it.
    ///
    /// If the test runs out of time, it ends the process.
    func wait() async -> CInt {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let code = self.state.withLock { state -> CInt? in
                    if state.code == nil { state.waiters.append(continuation) }
                    return state.code
                }
                if let code { continuation.resume(returning: code) }
            }
        } onCancel: {
            kill(self.id, SIGKILL)
        }
    }

    /// Whether the command handles signals, which would simply end it before.
    var takesSignals: Bool {
        let status = (try? Data(contentsOf: URL(filePath: "/proc/\(self.id)/status"))) ?? Data()
        // The command ignores SIGPIPE once it handles signals.
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("SigIgn:") }
        let mask = line.flatMap { UInt64($0.split(separator: "\t").last ?? "", radix: 16) } ?? 0
        return mask & (1 << UInt64(SIGPIPE - 1)) != 0
    }

    /// The peak memory of the command in bytes, available after its end.
    var peakBytes: Int { self.state.withLock { $0.peakBytes } }

    func signal(_ number: CInt) {
        kill(self.id, number)
    }

    private func reap() {
        var status: CInt = 0
        var usage = rusage()
        while wait4(self.id, &status, 0, &usage) < 0, errno == EINTR {}
        let signal = status & 0x7F
        let code = signal == 0 ? (status >> 8) & 0xFF : -signal
        let waiters = self.state.withLock { state in
            state.code = code
            state.peakBytes = usage.ru_maxrss << 10
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: code) }
    }
}
