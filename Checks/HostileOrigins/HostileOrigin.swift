// SPDX-License-Identifier: Apache-2.0

import Foundation
import TintypeTestSupport

/// The hostile origin: `origin.py` in a separate process, at the lowest priority.
///
/// A real attacker is another machine. Here it shares processors with the loader.
final class HostileOrigin: Sendable {
    /// The origin's behaviour under one path.
    struct Behaviour: Sendable, Decodable {
        /// The ways in which a load may end.
        enum Expectation: String, Sendable, Decodable {
            /// With the image of the requested number.
            case whole
            /// With an error.
            case error
            /// With either. The loader may tolerate unusual responses, but must not return another image.
            case either
        }

        let name: String
        /// Scheme, address and port.
        let origin: String
        let path: String
        let expectation: Expectation
        /// Whether the same origin also gives honest answers.
        let hasHonestNeighbour: Bool
        /// Whether it is one of the many behaviours of `http2_table.py`, which are loaded less often, with neighbours.
        let isInTable: Bool

        func url(_ number: Int) throws -> URL { try Self.url("\(self.origin)/\(self.path)/\(number)") }

        func honestURL(_ number: Int) throws -> URL { try Self.url("\(self.origin)/honest/\(number)") }

        private static func url(_ text: String) throws -> URL {
            guard let url = URL(string: text) else { throw TestSupportError("\(text) is no URL") }
            return url
        }
    }

    private struct Description: Decodable {
        let certificate: String
        let behaviours: [Behaviour]
    }

    let behaviours: [Behaviour]
    /// The file with the certificate that its TLS ports show.
    let certificatePath: String
    private let folder: TemporaryDirectory
    private let process: ChildProcess

    init() async throws {
        // Only Debian's own interpreter has the module `hpack`.
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "origin.py").path
        self.folder = try TemporaryDirectory(prefix: "tintype-hostile")
        let log = self.folder.path(of: "output.log")
        self.process = try ChildProcess(["/usr/bin/python3", script, self.folder.path], log: log)
        let file = self.folder.path(of: "origin.json")
        let deadline = ContinuousClock.now + .seconds(60)
        while !FileManager.default.fileExists(atPath: file) {
            guard ContinuousClock.now < deadline else {
                let output = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
                throw TestSupportError("The hostile origin did not start; is python3-hpack installed? \(output)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        let data = try Data(contentsOf: URL(filePath: file))
        let description = try JSONDecoder().decode(Description.self, from: data)
        self.behaviours = description.behaviours
        self.certificatePath = description.certificate
    }

    func stop() {
        self.process.stop()
    }
}
