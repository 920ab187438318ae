// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

/// URLs that a client library in use makes and signs: `imgproxy` of PyPI.
@Suite(
    .enabled(
        if: RealClient.isInstalled,
        "The client is missing; run .ci/setup test, which needs a network once."
    ),
    .waiting,
    .timeLimit(.minutes(5))
)
struct ServedClientTests {
    /// A URL of the client, and what its options ask for.
    private struct Case: Decodable {
        let target: String
        let width: Int
        let height: Int
        let format: String
    }

    private static let (key, salt) = ("943b421c9eb07c83", "520f986b998682f1")

    @Test(arguments: [true, false])
    func `fifty signed URLs of a real client are answered with the right size and format`(isSigned: Bool) async throws {
        let folder = try TemporaryDirectory()
        let change: (inout ImageServer.Configuration) throws -> Void = {
            if isSigned { $0.addresses.keys = [try SignatureKey(key: Self.key, salt: Self.salt)] }
        }
        try await ServerFixture.run(["/a.png": .image(try ServerImages.encoded(.png))], change: change) { fixture in
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "client_urls.py").path
            let keys = isSigned ? [Self.key, Self.salt] : []
            try ChildProcess.run(
                [RealClient.python, script, fixture.origin.url("/a.png").absoluteString] + keys,
                log: folder.path(of: "urls")
            )
            let output = String(decoding: try Data(contentsOf: folder.url(of: "urls")), as: UTF8.self)
            let cases = try output.split(separator: "\n").map {
                try JSONDecoder().decode(Case.self, from: Data($0.utf8))
            }
            #expect(cases.count >= 50)
            for item in cases {
                let response = try await fixture.response(to: item.target)
                #expect(response.status == 200, "\(item.target): \(response.text.prefix(100))")
                guard response.status == 200 else { continue }
                #expect(response["Content-Type"] == "image/\(item.format)", "\(item.target)")
                #expect(try response.size() == "\(item.width)x\(item.height)", "\(item.target)")
                if isSigned {
                    // One more byte in the path, and one other in the signature.
                    #expect(try await fixture.response(to: item.target + "a").status == 403)
                    let end = item.target.index(after: item.target.startIndex)
                    let other = item.target[end] == "A" ? "B" : "A"
                    #expect(try await fixture.response(to: "/\(other)\(item.target.dropFirst(2))").status == 403)
                }
            }
            #expect(fixture.origin.requestCount(for: "/a.png") == 1)
        }
    }
}

/// The client library, in the virtual environment of the tests.
private enum RealClient {
    private static let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    static let python = tests.appending(path: ".venv/bin/python").path

    /// Whether `.ci/setup test` has installed the client.
    static let isInstalled =
        access(python, X_OK) == 0
        && (try? String(contentsOf: tests.appending(path: ".venv/installed"), encoding: .utf8))?.contains("imgproxy")
            == true
}
