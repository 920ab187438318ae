// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A virtual environment of Python for peers.
///
/// The versions are pinned, so that all runs compare the same peers.
struct PythonEnvironment: Sendable {
    /// The environment of the peers in `peer.py`.
    static let peers = PythonEnvironment(
        folder: ".venv",
        packages: [
            "pillow==13.0.0", "pyvips==3.2.0", "pyvips-binary==8.18.7", "numpy==2.4.6", "diskcache==5.6.3",
            "ssimulacra2==0.3.0",
        ]
    )
    /// The environment of thumbor, which needs an older Pillow.
    static let thumbor = PythonEnvironment(folder: ".venv-thumbor", packages: ["thumbor==7.8.0", "pillow==12.3.0"])

    private let folder: String
    private let packages: [String]

    /// Makes the environment of the peers unless it is there, and returns the command of their worker.
    static func prepare(in folders: Folders) async throws -> [String] {
        [try await self.peers.python(in: folders), folders.benchmarks.appendingPathComponent("peers/peer.py").path]
    }

    /// Makes the environment unless it is there, and returns the path of its interpreter.
    func python(in folders: Folders) async throws -> String {
        let environment = folders.benchmarks.appendingPathComponent(self.folder)
        let python = environment.appendingPathComponent("bin/python").path
        let marker = environment.appendingPathComponent("installed").path
        let wanted = self.packages.joined(separator: "\n")
        if (try? String(contentsOfFile: marker, encoding: .utf8)) != wanted {
            try await self.make(environment.path, python)
            try wanted.write(toFile: marker, atomically: true, encoding: .utf8)
        }
        return python
    }

    private func make(_ environment: String, _ python: String) async throws {
        Console.note("making the virtual environment \(self.folder) of Python (once)")
        let made = try await ChildProcess.run(["/usr/bin/env", "python3", "-m", "venv", environment])
        guard made.exit.status == 0 else {
            throw Unavailable("no Python peers: python3 -m venv failed (apt install python3-venv)")
        }
        let arguments = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"] + self.packages
        guard try await ChildProcess.run(arguments).exit.status == 0 else {
            throw Unavailable("no Python peers: pip could not install \(self.packages.joined(separator: " "))")
        }
    }
}
