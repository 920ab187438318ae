// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport

/// The results of a finished `tintype`.
struct CommandRun: CustomTestStringConvertible {
    /// The exit code, or minus the number of the signal that ended the command.
    let code: CInt
    let output: String
    let errors: String
    /// The peak memory in bytes.
    let peakBytes: Int

    var testDescription: String { "exit \(self.code), output: \(self.output), errors: \(self.errors)" }

    /// The lines of standard output.
    var lines: [String] { self.output.split(separator: "\n").map(String.init) }
    /// The lines of standard error.
    var errorLines: [String] { self.errors.split(separator: "\n").map(String.init) }

    /// Returns standard output as JSON, with one object in each line.
    func objects() throws -> [[String: JSONValue]] {
        try self.lines.map { try JSONDecoder().decode([String: JSONValue].self, from: Data($0.utf8)) }
    }

    /// Returns standard output as a single JSON object.
    func object() throws -> [String: JSONValue] {
        let objects = try self.objects()
        try #require(objects.count == 1)
        return objects[0]
    }
}

/// The built command in its own folder, which is also its home and contains its cache.
struct CommandFixture {
    let folder: TemporaryDirectory

    init() throws {
        self.folder = try TemporaryDirectory(prefix: "tintype-command")
    }

    /// Runs `tintype` to its end.
    func run(_ arguments: String..., input: String? = nil, prelude: String = ":") async throws -> CommandRun {
        try await self.run(arguments, input: input, prelude: prelude)
    }

    /// Runs `tintype` to its end, with its standard output in the file `outputPath` if it is given.
    ///
    /// `prelude` has commands for the shell that starts it.
    func run(
        _ arguments: [String],
        input: String? = nil,
        outputPath: String? = nil,
        prelude: String = ":"
    ) async throws -> CommandRun {
        let inputPath = try input.map { try self.folder.write($0.utf8, to: self.name("input")) } ?? "/dev/null"
        let output = outputPath ?? self.folder.path(of: self.name("output"))
        let errors = self.folder.path(of: self.name("errors"))
        let files = [inputPath, output, errors]
        let process = try CommandProcess(arguments, in: self.folder, files: files, prelude: prelude)
        let code = await process.wait()
        return CommandRun(
            code: code,
            output: outputPath == nil ? try self.text(output) : "",
            errors: try self.text(errors),
            peakBytes: process.peakBytes
        )
    }

    /// Returns the report of `tintype info` about a file.
    func info(_ path: String) async throws -> [String: JSONValue] {
        let run = try await self.run("info", "--json", path)
        try #require(run.code == 0, "\(run.testDescription)")
        return try run.object()
    }

    /// Returns the names in a folder, sorted.
    func names(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: self.folder.path(of: folder)).sorted()
    }

    func data(_ name: String) throws -> Data {
        try Self.content(of: self.folder.path(of: name))
    }

    private func name(_ stream: String) -> String { "streams/\(stream)-\(UInt64.random(in: 0...UInt64.max))" }

    private func text(_ path: String) throws -> String {
        String(decoding: try Self.content(of: path), as: UTF8.self)
    }

    /// Returns the bytes of a file, without reading empty files because Foundation leaks its buffer for them.
    private static func content(of path: String) throws -> Data {
        var status = stat()
        let isEmpty = stat(path, &status) == 0 && status.st_size == 0
        return isEmpty ? Data() : try Data(contentsOf: URL(filePath: path))
    }
}
