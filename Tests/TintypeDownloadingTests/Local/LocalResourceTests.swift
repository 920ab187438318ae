// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct LocalResourceTests {
    private let downloader = DownloadActor.patient()
    private let folder: TemporaryDirectory

    init() throws {
        self.folder = try TemporaryDirectory()
    }

    // MARK: Files

    @Test(arguments: ["file://", "file://localhost", "FILE://", "file:", "file://LocalHost"])
    func `a file is read`(prefix: String) async throws {
        let content = pattern(2_500_000)
        let path = try self.folder.write(content, to: "a b%ü.jpg")
        let escaped = path.replacing(" ", with: "%20").replacing("%ü", with: "%25%C3%BC")
        let progress = Recorder<TransferProgress>()
        let request = DownloadRequest(url: try url(prefix + escaped))
        let response = try await self.downloader.response(for: request) { progress.record($0) }
        #expect(response.body == content)
        #expect(response.status == nil)
        #expect(progress.elements.last?.fractionCompleted == 1)
        #expect(progress.elements.count > 1)
    }

    @Test func `no limit is a limit`() async throws {
        try self.folder.write([1, 2], to: "a")
        var configuration = DownloadActor.Configuration()
        configuration.maximumBodySize = .max
        configuration.maximumTransfers = .max
        configuration.maximumConnectionsPerHost = .max
        let downloader = DownloadActor(configuration: configuration)
        #expect(try await downloader.body(at: self.folder.url(of: "a")) == Data([1, 2]))
        let origin = try FaultyOrigin(["/a": .body([3])])
        #expect(try await downloader.body(at: origin.url("/a")) == Data([3]))
    }

    @Test func `a URL made from a path is read`() async throws {
        try self.folder.write([1, 2], to: "x?#.jpg")
        #expect(try await self.downloader.body(at: self.folder.url(of: "x?#.jpg")) == Data([1, 2]))
    }

    @Test func `a missing file is not found`() async throws {
        let error = try await self.downloader.error(at: self.folder.url(of: "none.jpg"))
        #expect(error.code == .fileNotFound)
        #expect(error.message.contains("none.jpg"))
    }

    @Test func `a folder is unreadable`() async throws {
        let error = try await self.downloader.error(at: try url("file://\(self.folder.path)"))
        #expect(error.code == .fileUnreadable)
        #expect(error.message.contains("directory"))
    }

    @Test func `a pipe is unreadable and not waited for`() async throws {
        #expect(mkfifo(self.folder.path(of: "pipe"), 0o600) == 0)
        #expect(try await self.downloader.error(at: self.folder.url(of: "pipe")).code == .fileUnreadable)
    }

    @Test func `an empty file is an empty body`() async throws {
        try self.folder.write([], to: "empty")
        #expect(try await self.downloader.error(at: self.folder.url(of: "empty")).code == .emptyBody)
    }

    @Test func `a file over the limit is not read`() async throws {
        try self.folder.write(pattern(11), to: "a")
        var request = DownloadRequest(url: self.folder.url(of: "a"), maximumBodySize: 10)
        #expect(try await self.downloader.error(for: request).code == .bodyTooLarge)
        request.maximumBodySize = 11
        #expect(try await self.downloader.response(for: request).body.count == 11)
    }

    @Test(arguments: ["file://example.org/a", "file:a/b", "file://", "file:///a%00b"])
    func `a file URL without a path of this machine is invalid`(text: String) async throws {
        #expect(try await self.downloader.error(at: url(text)).code == .invalidURL)
    }

    @Test func `files do not use the loop`() async throws {
        try self.folder.write([1], to: "a")
        _ = try await self.downloader.body(at: self.folder.url(of: "a"))
        #expect(await self.downloader.counters.started == 0)
    }

    // MARK: Data

    @Test(
        arguments: [
            ("data:image/png;base64,AQIDBA==", [1, 2, 3, 4], "image/png"),
            ("data:image/png;base64,AQIDBA", [1, 2, 3, 4], "image/png"),
            ("DATA:image/png;BASE64,AQID%0ABA%3D%3D", [1, 2, 3, 4], "image/png"),
            ("data:,a%20b%2C%ff#fragment", [0x61, 0x20, 0x62, 0x2C, 0xFF], "text/plain;charset=US-ASCII"),
            ("data:;charset=utf-8,x", [0x78], "text/plain;charset=utf-8"),
            ("data:image/svg+xml;charset=utf-8,%3Csvg/%3E", Array("<svg/>".utf8), "image/svg+xml;charset=utf-8"),
            ("data:text/plain,base64", Array("base64".utf8), "text/plain"),
        ] as [(String, [UInt8], String)]
    )
    func `a data URL is decoded`(text: String, bytes: [UInt8], mediaType: String) async throws {
        let response = try await self.downloader.response(for: DownloadRequest(url: url(text)))
        #expect(response.body == Data(bytes))
        #expect(response.headers["content-type"] == mediaType)
        #expect(response.status == nil)
    }

    @Test(arguments: [
        ("data:image/png;base64", DownloadError.Code.invalidURL), ("data:;base64,A", .invalidURL),
        ("data:;base64,AQ*D", .invalidURL), ("data:image/png,", .emptyBody), ("data:;base64,====", .emptyBody),
    ])
    func `a damaged data URL is an error`(text: String, code: DownloadError.Code) async throws {
        #expect(try await self.downloader.error(at: url(text)).code == code)
    }

    @Test func `a data URL over the limit is an error`() async throws {
        let request = DownloadRequest(url: try url("data:,12345678901"), maximumBodySize: 10)
        #expect(try await self.downloader.error(for: request).code == .bodyTooLarge)
    }
}
