// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeFrameworkNames

@Suite struct ImportTests {
    /// The type names of server frameworks.
    ///
    /// If `import Tintype` also brought one of them, the name would be ambiguous and nothing would compile. If it
    /// re-exported one by name, the test would fail, because that type would hide the framework's.
    private typealias Names = (
        Abort, Application, Authenticator, BasicAuthorization, BearerAuthorization, BodyStreamResult, ByteBuffer,
        Cache, CacheControl, CacheExpirationTime, Channel, Client, ClientRequest, ClientResponse, Command, Console,
        Content, ContentConfiguration, Cookie, Cookies, Counter, Digest, Environment, ErrorSource, EventLoop,
        EventLoopFuture, File, FileIO, FileMiddleware, FileProvider, Gauge, HTTPClient, HTTPClientError,
        HTTPClientRequest, HTTPClientRequestPart, HTTPClientResponse, HTTPCookies, HTTPError, HTTPField, HTTPFields,
        HTTPHeaders, HTTPMediaType, HTTPMethod, HTTPParserError, HTTPRequest, HTTPRequestHead, HTTPResponse,
        HTTPResponseHead, HTTPResponseStatus, HTTPStatus, HTTPVersion, IOData, IOError, LogRequestsMiddleware, Logger,
        MediaType, Middleware, Parameters, ProgressBar, Request, RequestBody, RequestContext, Responder, Response,
        ResponseBody, Route, RouteCollection, Router, RouterGroup, SHA256, Server, Session, SessionData,
        SocketAddress, Storage, TLSConfiguration, TLSVersion, Terminal, TimeAmount, URI, Validatable, Validations,
        Validator, ValidatorResult, View, WebSocket
    )

    @Test func `the names of server frameworks are theirs beside our import`() {
        let names = String(reflecting: Names.self).dropFirst().dropLast().split(separator: ", ")
        #expect(names.count > 80)
        #expect(names.filter { !$0.hasPrefix("TintypeFrameworkNames.") } == [])
    }

    @Test(arguments: [
        ("README.md", "ReadmeSamples.swift"),
        ("Docs/errors.md", "ErrorSamples.swift"),
        ("Docs/guide.md", "GuideSamples.swift"),
        ("Docs/coming-from.md", "ComingFromSamples.swift"),
        ("Docs/observing.md", "ObservingSamples.swift"),
    ]) func `the samples that compile are those of the page, line by line`(page: String, samples: String) throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let root = folder.deletingLastPathComponent().deletingLastPathComponent()
        var rest = try Self.lines(of: folder.appending(path: samples))[...]
        var count = 0
        var isCode = false
        for line in try Self.lines(of: root.appending(path: page)) {
            if line.hasPrefix("```") {
                isCode = line == "```swift"
            } else if isCode, !line.isEmpty, !line.hasPrefix("import ") {
                let index = rest.firstIndex(of: line)
                #expect(index != nil, "no sample has the line \(line)")
                rest = rest[(index.map { $0 + 1 } ?? rest.startIndex)...]
                count += 1
            }
        }
        #expect(count > 3)
    }

    /// Returns the lines of a file without comments and with single spaces.
    private static func lines(of file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            return words.prefix { $0 != "//" }.joined(separator: " ")
        }
    }
}
