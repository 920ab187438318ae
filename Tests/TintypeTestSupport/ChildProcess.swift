// SPDX-License-Identifier: Apache-2.0

import Glibc
import TintypeConcurrency

/// A program that runs beside the tests and ends with them.
///
/// A small shell starts the program and reads from a socket whose other end only this process holds. ``stop()`` or a
/// crash of the tests closes that end. Then the shell ends the program, so that no program is left behind.
public final class ChildProcess: Sendable {
    private struct State {
        let process: pid_t
        let lifeline: CInt
    }

    /// The script of the shell, which closes the program's descriptors.
    ///
    /// Otherwise a client would wait at a port whose server has died. A stopped program must continue to end.
    private static let script = #"""
        "$@" & child=$!; exec 3>&- 4>&-; read -r _
        kill "$child" 2>/dev/null; kill -CONT "$child" 2>/dev/null; wait "$child"
        """#

    /// The lock of starting processes, and of tests that open descriptors without close-on-exec.
    ///
    /// A child that inherits another test's connection would keep it open.
    static let starting = Locked(())

    private let state: Locked<State?>

    /// Starts the program with the full path `arguments[0]`.
    ///
    /// In the program, `descriptors` have the numbers 3, 4 and so on. Its output goes to the file `log`.
    public init(
        _ arguments: [String],
        environment: [String: String] = [:],
        descriptors: [CInt] = [],
        log: String
    ) throws {
        var pair: [CInt] = [0, 0]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
            throw TestSupportError("No socket pair could be opened: errno \(errno).")
        }
        defer { close(pair[0]) }
        do {
            let process = try Self.spawn(
                ["/bin/sh", "-c", Self.script, "sh"] + arguments,
                environment: environment,
                input: pair[0],
                descriptors: descriptors,
                log: log
            )
            self.state = Locked(State(process: process, lifeline: pair[1]))
        } catch {
            close(pair[1])
            throw error
        }
    }

    deinit {
        self.stop()
    }

    /// Ends the program and waits for its end, and does nothing at a second call.
    public func stop() {
        guard let state = self.state.withLock({ $0.take() }) else { return }
        close(state.lifeline)
        _ = Self.wait(for: state.process)
    }

    /// Runs the program with the full path `arguments[0]` to its end, and throws if its exit status is not 0.
    public static func run(_ arguments: [String], log: String) throws {
        let process = try self.spawn(arguments, environment: [:], input: nil, descriptors: [], log: log)
        let status = self.wait(for: process)
        guard status == 0 else {
            throw TestSupportError("\(arguments[0]) failed with wait status \(status); see \(log).")
        }
    }

    private static func spawn(
        _ arguments: [String],
        environment: [String: String],
        input: CInt?,
        descriptors: [CInt],
        log: String
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // Copy the descriptors to high numbers first, because the program will use the numbers from 3 on.
        let sources = ([input].compactMap(\.self) + descriptors).map { fcntl($0, F_DUPFD_CLOEXEC, 100) }
        defer { for source in sources { close(source) } }
        let targets = (input == nil ? [] : [0]) + descriptors.indices.map { CInt($0 + 3) }
        for (source, target) in zip(sources, targets) { posix_spawn_file_actions_adddup2(&actions, source, target) }
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o644)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        let variables = environment.merging(["PATH": path]) { given, _ in given }.map { "\($0)=\($1)" }
        // Threads of the cooperative pool block signals, and the program would inherit that.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let program = arguments[0]
        var process = pid_t()
        let code = withCStrings(arguments) { arguments in
            withCStrings(variables) { variables in
                self.starting.withLock { _ in
                    posix_spawn(&process, program, &actions, &attributes, arguments, variables)
                }
            }
        }
        guard code == 0 else { throw TestSupportError("\(arguments[0]) could not be started: errno \(code).") }
        return process
    }

    private static func wait(for process: pid_t) -> CInt {
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }
}
