// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// Measures files, each in a child process, so that one that ends the process or fills the memory is a result.
struct Probe {
    /// The path of the file that a child reads.
    private let path: String

    init(folder: String, name: String) {
        self.path = "\(folder)/\(name)"
    }

    /// The measurements of the kinds, up to one that ends the child.
    func measure(_ bytes: [UInt8], _ kinds: [Kind], _ load: Load) throws -> [Measurement] {
        try Data(bytes).write(to: URL(fileURLWithPath: self.path))
        return try Self.child(path: self.path, kinds, load)
    }

    /// Returns the measurements of all kinds.
    ///
    /// If a kind ends the child, another child measures the next one.
    static func measure(path: String, _ kinds: [Kind], _ load: Load) throws -> [Measurement] {
        var left = kinds[...]
        var measurements: [Measurement] = []
        while !left.isEmpty {
            let done = try self.child(path: path, Array(left), load)
            guard !done.isEmpty else { throw Failure("a child measured nothing") }
            measurements += done
            left = left.dropFirst(done.count)
        }
        return measurements
    }

    private static func child(path: String, _ kinds: [Kind], _ load: Load) throws -> [Measurement] {
        let arguments =
            ["/proc/self/exe", "measure", path, load.allowsTruncated ? "1" : "0", String(load.pieceBytes)]
            + kinds.map(\.rawValue)
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw Failure("there is no pipe: errno \(errno)") }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addclose(&actions, ends[0])
        // The messages of a process that traps are not useful here.
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var environment: [UnsafeMutablePointer<CChar>?] = [strdup("SWIFT_BACKTRACE=enable=no"), nil]
        defer { for word in environment { free(word) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, "/proc/self/exe", &actions, nil, &words, &environment)
        close(ends[1])
        defer { close(ends[0]) }
        guard code == 0 else { throw Failure("a child did not start: errno \(code)") }
        let output = self.output(of: ends[0], child)
        var status: CInt = 0
        var usage = rusage()
        while wait4(child, &status, 0, &usage) < 0, errno == EINTR {}
        return self.measurements(in: output, kinds, status: status, usage: usage)
    }

    /// Returns the child's output.
    ///
    /// Stops when the child ends, or does nothing for two minutes.
    ///
    /// A child may be silent for longer on a busy machine, because its limit is on processor time.
    private static func output(of descriptor: CInt, _ child: pid_t) -> String {
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        var seconds = 0.0
        while true {
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let count = poll(&ready, 1, 120_000)
            if count < 0, errno == EINTR { continue }
            if count == 0 {
                let last = seconds
                seconds = Self.processorSeconds(of: child)
                if seconds > last { continue }
                kill(child, SIGKILL)
            }
            let size = read(descriptor, &buffer, buffer.count)
            if size <= 0 { return String(decoding: output, as: UTF8.self) }
            output += buffer[..<size]
        }
    }

    /// Returns the processor time of a child, or 0 if it is unknown.
    private static func processorSeconds(of child: pid_t) -> Double {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(child, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func measurements(
        in output: String,
        _ kinds: [Kind],
        status: CInt,
        usage: rusage
    ) -> [Measurement] {
        var done = output.split(separator: "\n").compactMap { Measurement(line: $0) }
        guard done.count < kinds.count else { return done }
        let signal = status & 0x7F
        let seconds = usage.seconds - done.reduce(0) { $0 + $1.seconds }
        done.append(
            Measurement(
                kind: kinds[done.count],
                seconds: seconds,
                countedBytes: 0,
                takenBytes: 0,
                outcome: signal == 0 ? "ended by signal 0, code \(status >> 8)" : "ended by signal \(signal)"
            )
        )
        return done
    }
}
