// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Counts the system calls of a server with perf, which does not slow it down as strace does.
enum SystemCalls {
    /// Returns the calls for each of 20,000 requests.
    static func perRequest(
        _ requests: HTTPLoad.Requests,
        _ load: HTTPLoad,
        _ server: MeasuredServer,
        _ session: Session
    ) async throws -> Double {
        var requests = requests
        requests.count = 20_000
        let figures = session.folders.temporary.appendingPathComponent("system-calls-\(server.port)")
        let processes = server.processes.map(String.init).joined(separator: ",")
        // perf counts from the start of the client to its end.
        let counter = [
            "/usr/bin/env", "perf", "stat", "-x", ",", "-o", figures.path, "-e", "raw_syscalls:sys_enter", "-p",
            processes,
        ]
        let (exit, output) = try await ChildProcess.run(counter + load.command(requests, server))
        guard exit.status == 0 else { throw Unavailable("perf counts no system calls here (apt install linux-perf)") }
        let answer = try JSONDecoder().decode(HTTPLoad.Answer.self, from: Data(output.utf8))
        let lines = try String(contentsOf: figures, encoding: .utf8).split(separator: "\n")
        guard let calls = lines.last?.split(separator: ",").first.flatMap({ Double($0) }) else {
            throw Unavailable("perf counted no system calls")
        }
        return calls / Double(answer.answers.values.reduce(0) { $0 + $1.count })
    }
}
