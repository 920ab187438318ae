// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Counts the system calls of a server with perf, which does not slow it down as strace does.
enum SystemCalls {
    /// Returns the calls for each of 20,000 requests.
    static func perRequest(
        _ requests: HTTPLoad.Requests,
        _ load: HTTPLoad,
        _ server: MeasuredServer
    ) async throws -> Double {
        var requests = requests
        requests.count = 20_000
        let processes = server.processes.map(String.init).joined(separator: ",")
        let counter = try ChildProcess(
            [
                "/usr/bin/env", "perf", "stat", "-x", ",", "--log-fd", "1", "-e", "raw_syscalls:sys_enter", "-p",
                processes,
            ]
        )
        // The counter must be attached before the first request.
        try await Task.sleep(for: .milliseconds(500))
        let answer = try await load.run(requests, to: server)
        kill(counter.identifier, SIGINT)
        let output = try await BlockingLane.shared.run {
            let output = try counter.output?.readToEnd() ?? Data()
            _ = counter.wait()
            return String(decoding: output, as: UTF8.self)
        }
        guard let calls = output.split(separator: ",").first.flatMap({ Double($0) }) else {
            throw Unavailable("perf counts no system calls: \(output)")
        }
        return calls / Double(answer.answers.values.reduce(0) { $0 + $1.count })
    }
}
