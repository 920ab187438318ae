// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A server under load, with the kernel's figures for its processes.
struct MeasuredServer: Sendable {
    /// The port on the loopback interface.
    let port: UInt16
    let process: ChildProcess

    /// A session without cached answers.
    private static let session = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        return URLSession(configuration: configuration)
    }()

    /// The URL of the server, ending in a slash.
    var base: String { "http://127.0.0.1:\(self.port)/" }

    /// Starts `command`, whose messages go to a file, and waits until `path` has an answer.
    static func start(
        _ command: [String],
        port: UInt16,
        answering path: String,
        _ folders: Folders
    ) async throws
        -> MeasuredServer
    {
        let log = folders.temporary.appendingPathComponent("server-\(port).log").path
        let silent = ["/bin/sh", "-c", "exec \"$@\" >\"$0\" 2>&1", log] + command
        let process = try await BlockingLane.shared.run {
            try ChildProcess(NginxOrigin.dyingWithUs + silent, output: .discarded)
        }
        let server = MeasuredServer(port: port, process: process)
        for _ in 0..<250 {
            if (try? await server.get(path)) != nil { return server }
            try await Task.sleep(for: .milliseconds(40))
        }
        await server.end()
        let message = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        throw Unavailable("\(command[0]) did not answer within ten seconds: \(message.suffix(300))")
    }

    /// Loads `path`, and returns the status, the body and the entity tag.
    func get(_ path: String) async throws -> (status: Int, body: Data, tag: String?) {
        guard let url = URL(string: self.base + path) else { throw Unavailable("bad path \(path)") }
        let (body, response) = try await Self.session.data(from: url)
        guard let response = response as? HTTPURLResponse else { throw Unavailable("no answer of HTTP") }
        return (response.statusCode, body, response.value(forHTTPHeaderField: "ETag"))
    }

    /// The processor time of all its processes so far, in seconds.
    var cpuSeconds: Double {
        self.processes.reduce(0) { sum, process in
            var clock = clockid_t()
            var time = timespec()
            guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return sum }
            return sum + Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
    }

    /// The resident memory of all its processes, in bytes.
    ///
    /// Pages that processes share count for each of them.
    var residentBytes: Double { self.memory("VmRSS") }

    /// The part of ``residentBytes`` that is not a part of files, such as the program and its libraries.
    var anonymousBytes: Double { self.memory("RssAnon") }

    /// The most resident memory since the last call of ``resetPeak()``, in bytes.
    var peakBytes: Double { self.memory("VmHWM") }

    /// Makes the memory that is resident now the peak.
    func resetPeak() {
        for process in self.processes {
            try? "5".write(toFile: "/proc/\(process)/clear_refs", atomically: false, encoding: .utf8)
        }
    }

    /// Kills all processes, because the first process of thumbor ignores SIGTERM.
    func end() async {
        for process in self.processes { kill(process, SIGKILL) }
        _ = try? await BlockingLane.shared.run { self.process.wait() }
    }

    /// The process and its children.
    var processes: [pid_t] {
        let first = self.process.identifier
        let children = (try? String(contentsOfFile: "/proc/\(first)/task/\(first)/children", encoding: .utf8)) ?? ""
        return [first] + children.split(separator: " ").compactMap { pid_t($0) }
    }

    private func memory(_ field: String) -> Double {
        self.processes.reduce(0) { sum, process in
            let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
            let line = status.split(separator: "\n").first { $0.hasPrefix("\(field):") }
            let kibibytes = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap {
                Double($0)
            }
            return sum + (kibibytes ?? 0) * 1024
        }
    }
}
