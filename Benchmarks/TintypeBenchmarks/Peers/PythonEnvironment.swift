// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The virtual environment that the Python peers live in.
enum PythonEnvironment {
    /// The packages to install.
    ///
    /// Their versions are pinned, so that all runs compare the same peers.
    private static let packages = [
        "pillow==13.0.0", "pyvips==3.2.0", "pyvips-binary==8.18.7", "numpy==2.4.6", "diskcache==5.6.3",
        "ssimulacra2==0.3.0",
    ]

    /// Makes the environment unless it is there, and returns the command of the worker in it.
    static func prepare(in folders: Folders) async throws -> [String] {
        let environment = folders.benchmarks.appendingPathComponent(".venv")
        let python = environment.appendingPathComponent("bin/python").path
        let marker = environment.appendingPathComponent("installed").path
        let wanted = self.packages.joined(separator: "\n")
        if (try? String(contentsOfFile: marker, encoding: .utf8)) != wanted {
            try await self.make(environment.path, python)
            try wanted.write(toFile: marker, atomically: true, encoding: .utf8)
        }
        return [python, folders.benchmarks.appendingPathComponent("peers/peer.py").path]
    }

    private static func make(_ environment: String, _ python: String) async throws {
        Console.note("making the virtual environment of the Python peers (once)")
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
