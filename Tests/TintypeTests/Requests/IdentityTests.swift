// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// Different images that must not share a name.
@Suite(.waiting, .timeLimit(.minutes(5))) struct IdentityTests {
    let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture()
    }

    @Test(arguments: [
        ("icons:///sheet.svg#home", "icons:///sheet.svg#away"), ("db://Cats/1", "db://cats/1"),
        ("s3://bucket/a/../b", "s3://bucket/b"), ("key:a/./b", "key:a/b"),
    ])
    func `URLs of a fetcher's own scheme are told apart as it tells them`(
        first: String,
        second: String
    ) async throws {
        let fetcher = ClosureFetcher(respond: { request, _ in
            let isFirst = request.url.absoluteString == first
            return DownloadResponse(body: Data(try makePNG(width: isFirst ? 10 : 20)), url: request.url)
        })
        let loader = self.fixture.makeLoader { $0.fetcher = fetcher }
        let urls = try [first, second].map { try #require(URL(string: $0)) }
        #expect(urls.map(\.absoluteString) == [first, second])
        #expect(try await loader.image(for: urls[0]).width == 10)
        #expect(try await loader.image(for: urls[1]).width == 20)
        #expect(try await loader.data(for: ImageRequest(url: urls[1])) == Data(makePNG(width: 20)))
    }

    @Test func `a path through a link is not what it would be without`() async throws {
        try self.fixture.directory.write(try makePNG(width: 10), to: "real/image")
        try self.fixture.directory.write(try makePNG(width: 20), to: "image")
        try self.fixture.directory.write([0], to: "real/folder/x")
        try FileManager.default.createSymbolicLink(
            atPath: self.fixture.directory.path(of: "link"),
            withDestinationPath: self.fixture.directory.path(of: "real/folder")
        )
        let through = try #require(URL(string: "file://\(self.fixture.directory.path)/link/../image"))
        let direct = try #require(URL(string: "file://\(self.fixture.directory.path)/image"))
        let loader = self.fixture.makeLoader()
        #expect(try await loader.image(for: through).width == 10)
        #expect(try await loader.image(for: direct).width == 20)
    }

    @Test func `fields that only look alike are two requests`() async throws {
        let latch = Latch()
        let origin = try FaultyOrigin(["/a": .held(by: latch, body: try makePNG())])
        let loader = self.fixture.makeLoader()
        let names = ["Jos\u{E9}", "Jose\u{301}"]
        let requests = names.map { ImageRequest(url: origin.url("/a"), headers: ["X-User": $0]) }
        #expect(requests[0].key != requests[1].key)
        let tasks = requests.map { request in Task { try await loader.data(for: request) } }
        let deadline = ContinuousClock.now + .seconds(3)
        await until {
            let shared = await loader.downloads.counters.shared
            return origin.requestCount(for: "/a") == 2 || shared > 0 || ContinuousClock.now > deadline
        }
        latch.open()
        for task in tasks { _ = try await task.value }
        #expect(origin.requestCount(for: "/a") == 2)
        #expect(
            DownloadRequest(url: origin.url("/a"), headers: ["X-User": names[0]])
                != DownloadRequest(url: origin.url("/a"), headers: ["X-User": names[1]])
        )
        #expect(Credentials.bearer(names[0]) != Credentials.bearer(names[1]))
    }

    @Test func `a response that varies on cookies is not reused where the jar has others by then`()
        async throws
    {
        let fields = [("Cache-Control", "max-age=600"), ("Vary", "Cookie")]
        let origin = try FaultyOrigin()
        origin.script(
            "/a",
            sequence: [
                .body(try makePNG(width: 10), headers: fields),
                .body(try makePNG(width: 20), headers: fields),
            ]
        )
        let jar = CookieJar()
        let loader = self.fixture.makeLoader { configuration in
            configuration.cachePolicy = .honorFreshness
            configuration.downloads.cookieJar = jar
        }
        let request = ImageRequest(url: origin.url("/a"), options: [.waitForStore])
        #expect(try await loader.image(for: request).width == 10)
        jar.insert(CookieJar.Cookie(name: "user", value: "bob", domain: "127.0.0.1"))
        #expect(try await loader.image(for: request).width == 20)
    }

    /// A file that is written twice within one tick of the file system's clock.
    @Test func `a file that is as long as before and just written is seen`() async throws {
        let loader = self.fixture.makeLoader()
        let url = self.fixture.directory.url(of: "image")
        let path = self.fixture.directory.path(of: "image")
        let bodies = [Data(try makePNG(gray: 1)), Data(try makePNG(gray: 2))]
        try bodies[0].write(to: URL(filePath: path))
        for index in 0..<300 {
            let request = ImageRequest(url: url, cachePolicy: .revalidate)
            let body = bodies[index % 2]
            let handle = try FileHandleForWriting(path)
            handle.replace(with: body)
            #expect(try await loader.data(for: request) == body)
            let image = try await loader.response(for: request)
            #expect(image.metadata.bodyDigest == BodyDigest.value(of: body))
        }
    }
}

/// A handle that overwrites a file in place.
private struct FileHandleForWriting {
    let path: String

    init(_ path: String) throws { self.path = path }

    func replace(with data: Data) {
        guard let file = fopen(self.path, "r+") else { return }
        data.withUnsafeBytes { _ = fwrite($0.baseAddress, 1, $0.count, file) }
        fclose(file)
    }
}
