// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TintypeTestSupport

/// A process that can be killed, stopped, continued and started again.
final class Member: Sendable {
    private struct State {
        var process: ChildProcess?
        var number: pid_t = 0
        var starts = 0
        var life: Int?
    }

    private static let startLimit = Duration.seconds(60)

    let name: String
    private let arguments: [String]
    private let folder: TemporaryDirectory
    private let isReady: @Sendable (pid_t) async -> Bool
    private let state = Mutex(State())

    /// Prepares a process; `isReady` says whether the one with this number serves.
    init(
        _ name: String,
        _ arguments: [String],
        folder: TemporaryDirectory,
        isReady: @escaping @Sendable (pid_t) async -> Bool
    ) {
        (self.name, self.arguments, self.folder, self.isReady) = (name, arguments, folder, isReady)
    }

    /// The number of the process.
    var number: pid_t { self.state.withLock { $0.number } }

    /// A number for the time from a start to the next kill; `nil` while the process does not serve.
    var life: Int? { self.state.withLock { $0.life } }

    /// The lines that the process has written.
    var log: [Substring] {
        let text = (try? String(contentsOfFile: self.folder.path(of: "\(self.name).log"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n")
    }

    /// Starts the process, and returns when it serves.
    func start() async throws {
        let starts = self.state.withLock { state in
            state.starts += 1
            return state.starts
        }
        let file = self.folder.path(of: "\(self.name)-\(starts).number")
        // The shell has the number that the program will have.
        let process = try ChildProcess(
            ["/bin/sh", "-c", #"echo $$ >"$0"; exec "$@""#, file] + self.arguments,
            environment: ["HOME": self.folder.path],
            log: self.folder.path(of: "\(self.name).log")
        )
        self.state.withLock { $0.process = process }
        let start = try await time(within: Self.startLimit) {
            guard let text = try? String(contentsOfFile: file, encoding: .utf8), text.hasSuffix("\n"),
                let number = pid_t(text.dropLast())
            else { return false }
            self.state.withLock { $0.number = number }
            return await self.isReady(number)
        }
        guard start != nil else { throw TestSupportError("\(self.name) did not start: \(self.log.suffix(5))") }
        self.state.withLock { $0.life = starts }
    }

    /// Kills the process at once, also a stopped one.
    func kill() {
        let process = self.state.withLock { state in
            state.life = nil
            return state.process.take()
        }
        guard let process else { return }
        Glibc.kill(self.number, SIGKILL)
        process.stop()
    }

    /// Stops the process, which keeps its connections open, until ``resume()``.
    func pause() {
        Glibc.kill(self.number, SIGSTOP)
    }

    /// Lets the process go on.
    func resume() {
        Glibc.kill(self.number, SIGCONT)
    }
}
