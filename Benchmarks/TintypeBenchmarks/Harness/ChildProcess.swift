// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A process that the harness started, with the system's record of its resource use.
///
/// Its calls block, so make them on the ``BlockingLane``.
struct ChildProcess: Sendable {
    /// How it ended.
    struct Exit: Sendable {
        /// The exit status, or 128 + the signal.
        let status: CInt
        /// Processor time, user and system.
        let cpuSeconds: Double
    }

    /// The destination of its output.
    enum Output: Sendable {
        case pipe
        case discarded
        case inherited
    }

    let identifier: pid_t
    /// The child's standard input, if requested.
    ///
    /// The user closes it.
    let input: FileHandle?
    /// The child's standard output, if requested.
    let output: FileHandle?

    /// Starts `arguments`, whose first element is a path, with `environment` added to the harness's own environment.
    init(
        _ arguments: [String],
        environment: [String: String] = [:],
        hasInput: Bool = false,
        output: Output = .pipe
    ) throws {
        let inputPipe = hasInput ? try Self.makePipe() : nil
        let outputPipe = output == .pipe ? try Self.makePipe() : nil
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let inputPipe {
            posix_spawn_file_actions_adddup2(&actions, inputPipe.read, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        if let outputPipe { posix_spawn_file_actions_adddup2(&actions, outputPipe.write, 1) }
        if output == .discarded { posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) }
        let path = arguments[0]
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        var identifier = pid_t()
        let result = Self.withCStrings(arguments) { arguments in
            Self.withCStrings(variables.map { "\($0)=\($1)" }) { variables in
                posix_spawn(&identifier, path, &actions, nil, arguments, variables)
            }
        }
        for descriptor in [inputPipe?.read, outputPipe?.write].compactMap({ $0 }) { close(descriptor) }
        guard result == 0 else {
            for descriptor in [inputPipe?.write, outputPipe?.read].compactMap({ $0 }) { close(descriptor) }
            throw Unavailable("cannot start \(arguments[0]): \(String(cString: strerror(result)))")
        }
        self.identifier = identifier
        self.input = inputPipe.map { FileHandle(fileDescriptor: $0.write, closeOnDealloc: true) }
        self.output = outputPipe.map { FileHandle(fileDescriptor: $0.read, closeOnDealloc: true) }
    }

    /// Waits for its end.
    func wait() -> Exit {
        var status = CInt()
        var usage = rusage()
        while wait4(self.identifier, &status, 0, &usage) < 0, errno == EINTR {}
        let signal = status & 0x7F
        return Exit(
            status: signal == 0 ? (status >> 8) & 0xFF : 128 + signal,
            cpuSeconds: usage.ru_utime.seconds + usage.ru_stime.seconds
        )
    }

    /// Asks it to end.
    func terminate() {
        kill(self.identifier, SIGTERM)
    }

    /// Starts `arguments`, waits for the end, and returns the output.
    static func run(_ arguments: [String]) async throws -> (exit: Exit, output: String) {
        try await BlockingLane.shared.run {
            let process = try ChildProcess(arguments)
            let data = try process.output?.readToEnd() ?? Data()
            return (process.wait(), String(decoding: data, as: UTF8.self))
        }
    }

    /// Both ends are closed in other children, so that an end of input reaches the right one.
    private static func makePipe() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw Unavailable("cannot make a pipe: \(String(cString: strerror(errno)))") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func withCStrings<Result>(
        _ strings: [String],
        _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let copies = strings.map { strdup($0) } + [nil]
        defer { for copy in copies { free(copy) } }
        return body(copies)
    }
}

extension timeval {
    fileprivate var seconds: Double { Double(self.tv_sec) + Double(self.tv_usec) / 1e6 }
}
