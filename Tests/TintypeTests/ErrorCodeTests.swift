// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeDownloading
import TintypeTestSupport

@Suite struct ErrorCodeTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The codes that the sources define, as lines of the table: name, category, status.
    private static func definedCodes() throws -> [String] {
        let sources = self.root.appending(path: "Sources")
        var codes: [String] = []
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path()) where path.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
            for match in text.matches(of: #/= TintypeErrorCode\("(\w+)", \.(\w+)(?:, httpStatus: (\d+))?\)/#) {
                let category = try #require(TintypeErrorCode.Category(rawValue: String(match.2)))
                codes.append("| `\(match.1)` | \(match.2) | \(match.3 ?? "\(category.httpStatus)") ")
            }
        }
        return codes.sorted()
    }

    @Test func `the table of errors lists each code with its category and status`() throws {
        let page = try String(contentsOf: Self.root.appending(path: "Docs/errors.md"), encoding: .utf8)
        let lines = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let listed = lines.map { $0.split(separator: "|", maxSplits: 3)[..<3].map { "|\($0)" }.joined() }
        let defined = try Self.definedCodes()
        #expect(listed.sorted() == defined)
        #expect(defined.count > 50)
        for category in TintypeErrorCode.Category.allCases {
            #expect(page.contains("| \(category.httpStatus) | \(category.publicMessage) |"))
        }
    }

    @Test(arguments: [
        (404, 404), (410, 404), (403, 502), (500, 502), (429, 502),
    ]) func `a server answers with 404 if the origin has no image, and with 502 for other failures`(
        status: Int,
        answer: Int
    ) async throws {
        let origin = ScriptedOrigin()
        origin.script("/a", .body(Data([1]), status: status, headers: ["X-A": "1"]))
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        configuration.fetcher = origin
        let url = origin.url("/a")
        let error = await #expect(throws: LoadError.self) {
            try await LoaderActor(configuration: configuration).image(for: url)
        }
        #expect(error?.httpStatus == answer)
        #expect(error?.status == status)
        #expect(error?.headers["X-A"] == "1")
        #expect(error?.url == url)
        #expect(error?.publicMessage == "The image could not be loaded from its origin.")
    }

    @Test func `a client cannot tell a refused address from an origin that failed`() {
        #expect(TintypeErrorCode.addressNotAllowed.category == .refused)
        #expect(TintypeErrorCode.addressNotAllowed.httpStatus == TintypeErrorCode.hostNotFound.httpStatus)
        #expect(TintypeErrorCode.addressNotAllowed.publicMessage == TintypeErrorCode.hostNotFound.publicMessage)
        #expect(TintypeErrorCode.schemeNotAllowed.httpStatus == 403)
    }
}
