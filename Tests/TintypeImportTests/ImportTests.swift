import FoundationEssentials
import FrameworkNames
import Testing
import Tintype

@Suite struct ImportTests {
    /// A name that `import Tintype` brings as well would be ambiguous here, and nothing would compile.
    private static let names: [Any.Type] = [
        Abort.self, Application.self, Authenticator.self, BasicAuthorization.self, BearerAuthorization.self,
        BodyStreamResult.self, ByteBuffer.self, Cache.self, CacheControl.self, CacheExpirationTime.self, Channel.self,
        Client.self, ClientRequest.self, ClientResponse.self, Command.self, Console.self, Content.self,
        ContentConfiguration.self, Cookie.self, Cookies.self, Counter.self, Digest.self, Environment.self,
        ErrorSource.self, EventLoop.self, EventLoopFuture.self, File.self, FileIO.self, FileMiddleware.self,
        FileProvider.self, Gauge.self, HTTPClient.self, HTTPClientError.self, HTTPClientRequest.self,
        HTTPClientRequestPart.self, HTTPClientResponse.self, HTTPCookies.self, HTTPError.self, HTTPField.self,
        HTTPFields.self, HTTPHeaders.self, HTTPMediaType.self, HTTPMethod.self, HTTPParserError.self,
        HTTPRequest.self, HTTPRequestHead.self, HTTPResponse.self, HTTPResponseHead.self, HTTPResponseStatus.self,
        HTTPStatus.self, HTTPVersion.self, IOData.self, IOError.self, LogRequestsMiddleware.self, Logger.self,
        MediaType.self, Middleware.self, Parameters.self, ProgressBar.self, Request.self, RequestBody.self,
        RequestContext.self, Responder.self, Response.self, ResponseBody.self, Route.self, RouteCollection.self,
        Router.self, RouterGroup.self, SHA256.self, Server.self, Session.self, SessionData.self, SocketAddress.self,
        Storage.self, TLSConfiguration.self, TLSVersion.self, Terminal.self, TimeAmount.self, URI.self,
        Validatable.self, Validations.self, Validator.self, ValidatorResult.self, View.self, WebSocket.self,
    ]

    @Test func `the names of server frameworks are theirs beside our import`() {
        for name in Self.names { #expect(String(reflecting: name).hasPrefix("FrameworkNames.")) }
    }

    @Test func `the samples that compile are the README's, line by line`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let samples = try Self.lines(of: folder.appending(path: "ReadmeSamples.swift"))
        let readme = folder.deletingLastPathComponent().deletingLastPathComponent().appending(path: "README.md")
        var rest = samples[...]
        var count = 0
        var isCode = false
        for line in try Self.lines(of: readme) {
            if line.hasPrefix("```") {
                isCode = line == "```swift"
            } else if isCode, !line.isEmpty, !line.hasPrefix("import ") {
                let index = rest.firstIndex(of: line)
                #expect(index != nil, "no sample has the line \(line)")
                rest = rest[(index.map { $0 + 1 } ?? rest.startIndex)...]
                count += 1
            }
        }
        #expect(count > 10)
    }

    /// The lines of a file without comments, and with one space where there are more.
    private static func lines(of file: URL) throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            return words.prefix { $0 != "//" }.joined(separator: " ")
        }
    }
}
