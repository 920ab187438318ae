// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeDownloading

@Suite struct ErrorCodeTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The codes that the sources define.
    private static func definedCodes() throws -> [TintypeErrorCode] {
        let sources = self.root.appending(path: "Sources")
        var codes: [TintypeErrorCode] = []
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path()) where path.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
            for match in text.matches(of: #/= TintypeErrorCode\("(\w+)", \.(\w+)(?:, httpStatus: (\d+))?\)/#) {
                let category = try #require(TintypeErrorCode.Category(rawValue: String(match.2)))
                codes.append(TintypeErrorCode(String(match.1), category, httpStatus: match.3.flatMap { Int($0) }))
            }
        }
        return codes
    }

    @Test func `the table of errors lists each code with its category and status`() throws {
        let page = try String(contentsOf: Self.root.appending(path: "Docs/errors.md"), encoding: .utf8)
        let lines = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let listed = lines.map { $0.split(separator: "|", maxSplits: 3)[..<3].map { "|\($0)" }.joined() }
        let defined = try Self.definedCodes().map { "| `\($0)` | \($0.category.rawValue) | \($0.httpStatus) " }.sorted()
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

    // MARK: Public messages

    /// The parts of the error below that clients must not see.
    private static let secrets = [
        "10.1.2.3", "8443", "db.internal", "/srv/images", "X-Internal", "secret-token", "maximumPixels",
    ]

    /// Returns an error with a secret in each of its parts.
    private static func error(_ code: TintypeErrorCode) throws -> LoadError {
        let secret = self.secrets.joined(separator: " ")
        let url = try #require(URL(string: "https://db.internal:8443/srv/images/a.png?secret-token"))
        let download = DownloadError(
            code: code,
            message: "10.1.2.3 is not allowed: \(secret)",
            url: url,
            status: 200,
            headers: ["X-Internal": "secret-token"]
        )
        return LoadError(code: code, message: download.message, underlyingError: download)
    }

    @Test(arguments: try definedCodes()) func `a public message contains no part of the error`(
        code: TintypeErrorCode
    ) throws {
        let error = try Self.error(code)
        let message = error.publicMessage
        for secret in Self.secrets { #expect(error.message.contains(secret) && !message.contains(secret)) }
        #expect(!message.contains(code.description))
        // Each code has the sentence of a category, so a message cannot vary with addresses and settings.
        #expect(TintypeErrorCode.Category.allCases.map(\.publicMessage).contains(message))
        #expect(message == code.publicMessage)
        #expect(code.publicMessage == (code == .addressNotAllowed ? .origin : code.category).publicMessage)
    }

    @Test(arguments: TintypeErrorCode.Category.allCases) func `a public sentence names no address, rule or symbol`(
        category: TintypeErrorCode.Category
    ) {
        let message = category.publicMessage
        // No digits and paths, no names of hosts and symbols.
        #expect(message.firstMatch(of: #/[0-9\/:`_@]|\.\w|[a-z][A-Z]/#) == nil, "\(message)")
        let rules = ["policy", "allowed", "denied", "private", "internal", "port", "scheme", "limit", "setting"]
        for rule in rules { #expect(!message.lowercased().contains(rule), "\(message)") }
        #expect(message.hasSuffix("."))
    }
}
