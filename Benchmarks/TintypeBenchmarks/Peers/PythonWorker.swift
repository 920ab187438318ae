// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeConcurrency

/// The long-lived Python process behind the Pillow and libvips sides.
///
/// It holds the files in memory and measures its own times, so the figures include neither its start nor the pipe.
actor PythonWorker {
    /// The worker's response to one job.
    ///
    /// The job determines which fields are set.
    struct Answer: Decodable, Sendable {
        var error: String?
        var wall: Double?
        var cpu: Double?
        var width: Int?
        var height: Int?
        var bytes: Int?
        var ssim: Double?
        var psnr: Double?
        /// The score of SSIMULACRA2, up to 100.
        var score: Double?
    }

    /// The options of a job.
    struct JobOptions: Encodable, Sendable {
        var side: Int?
        var format: String?
        var quality: Int?
        /// zlib's level of a PNG.
        var level: Int?
        /// How many frames there must be.
        var frames: Int?
        /// The operation on the pixels, and whether they have alpha.
        var operation: String?
        var hasAlpha: Bool?
        /// Whether to resize in linear light.
        var linear: Bool?
    }

    /// One request, without the fields that do not apply to it.
    struct Request: Encodable, Sendable {
        var `do`: String
        var job: String?
        var path: String?
        var count: Int?
        var options: JobOptions?
        var output: String?
        var original: String?
        var candidate: String?
        var width: Int?
        var height: Int?
        var bytes: Int?
        var progressive: Bool?
    }

    private let executor = ThreadExecutor(name: "bench-python")
    private let process: ChildProcess
    /// The command that started it, for the jobs that need a process of their own.
    nonisolated let command: [String]

    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    /// Starts `command`.
    init(_ command: [String]) throws {
        self.command = command
        self.process = try ChildProcess(command, hasInput: true)
    }

    /// Asks for one piece of work and waits for it.
    func ask(_ request: Request) throws -> Answer {
        let answer = try JSONDecoder().decode(Answer.self, from: self.exchange(request))
        if let error = answer.error { throw Unavailable(error) }
        return answer
    }

    /// Returns the versions of the peers.
    func versions() throws -> [String: String] {
        try JSONDecoder().decode([String: String].self, from: self.exchange(Request(do: "versions")))
    }

    /// A side of a contest: `job` on the file at `path`, which is loaded once, before.
    ///
    /// `check` sees the width, height and bytes of every sample's last result.
    func contestant(
        job: String,
        path: String,
        options: JobOptions? = nil,
        check: @escaping @Sendable (_ width: Int, _ height: Int) throws -> Void
    ) throws -> Contestant {
        _ = try self.ask(Request(do: "load", path: path))
        return Contestant { count in
            let answer = try await self.ask(Request(do: "run", job: job, path: path, count: count, options: options))
            return try answer.measurement(count, check)
        }
    }

    /// Lets the process end.
    func end() {
        try? self.process.input?.close()
        _ = self.process.wait()
        self.executor.shutdown()
    }

    private func exchange(_ request: Request) throws -> Data {
        guard let input = self.process.input, let output = self.process.output else {
            throw Unavailable("the Python worker has no pipes")
        }
        try input.write(contentsOf: JSONEncoder().encode(request) + Data("\n".utf8))
        var line = Data()
        while line.last != UInt8(ascii: "\n") {
            let chunk = output.availableData
            guard !chunk.isEmpty else { throw Unavailable("the Python worker ended") }
            line += chunk
        }
        return line
    }
}

extension PythonWorker.Answer {
    /// The times of `count` operations, once `check` has seen the result.
    func measurement(_ count: Int, _ check: (_ width: Int, _ height: Int) throws -> Void) throws -> Measurement {
        guard let wall, let cpu else { throw Unavailable("the Python worker took no times") }
        try check(self.width ?? 0, self.height ?? 0)
        return Measurement(wallSeconds: wall, cpuSeconds: cpu, operations: count)
    }
}
