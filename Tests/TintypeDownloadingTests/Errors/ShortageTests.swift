// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

/// Downloads in a process that runs out of threads, descriptors or memory.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ShortageTests {
    /// A port on which no server listens.
    static let closedPort = "http://127.0.0.1:9/a.jpg"

    @Test func `without a thread a download fails, and the next one tries again`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1, 2, 3])])
        let refusals = ThreadRefusals(2)
        let downloader = DownloadActor(configuration: .init(), startThread: refusals.start, loopDidEnd: nil)
        for _ in 0..<2 {
            let error = await #expect(throws: DownloadError.self) {
                try await downloader.response(for: DownloadRequest(url: origin.url("/a")))
            }
            #expect(error?.code == .tooManyThreads)
            #expect(error?.underlyingError is ThreadError)
        }
        #expect(origin.connectionCount == 0)
        #expect(try await downloader.response(for: DownloadRequest(url: origin.url("/a"))).body == Data([1, 2, 3]))
    }

    @Test func `what needs no thread works without one`() async throws {
        let downloader = DownloadActor(
            configuration: .init(),
            startThread: ThreadRefusals(.max).start,
            loopDidEnd: nil
        )
        await downloader.cancelAll()
        await downloader.suspend()
        await downloader.resume()
        #expect(await downloader.counters.started == 0)
        let url = try #require(URL(string: "data:,abc"))
        #expect(try await downloader.response(for: DownloadRequest(url: url)).body == Data("abc".utf8))
        await #expect(throws: DownloadError.self) {
            try await downloader.stream(for: DownloadRequest(url: URL(filePath: Self.closedPort)))
        }
    }

    @Test func `without a descriptor a download fails, and the next one tries again`() async {
        await #expect(processExitsWith: .success) {
            let downloader = DownloadActor()
            let url = try #require(URL(string: ShortageTests.closedPort))
            try await ProcessLimit.withOneDescriptor {
                let error = await #expect(throws: DownloadError.self) {
                    try await downloader.response(for: DownloadRequest(url: url))
                }
                try #require(error?.code == .tooManyOpenFiles)
                try #require(error?.message.contains("ulimit -n") == true)
            }
            // Now the loop runs, and the connection is refused.
            let error = await #expect(throws: DownloadError.self) {
                try await downloader.response(for: DownloadRequest(url: url))
            }
            try #require(error?.code == .cannotConnect)
        }
    }

    @Test(arguments: ["http://127.0.0.1:9/a.jpg", "https://127.0.0.1:9/a.jpg", "http://localhost.invalid/"])
    func `a loop that runs says that there is no descriptor, and goes on`(address: String) async {
        await #expect(processExitsWith: .success) { [address] in
            let downloader = DownloadActor()
            let url = try #require(URL(string: address))
            let before = await #expect(throws: DownloadError.self) {
                try await downloader.response(for: DownloadRequest(url: url))
            }
            try await ProcessLimit.withOneDescriptor {
                let error = await #expect(throws: DownloadError.self) {
                    try await downloader.response(for: DownloadRequest(url: url))
                }
                try #require(error?.code == .tooManyOpenFiles, "\(String(describing: error))")
            }
            let after = await #expect(throws: DownloadError.self) {
                try await downloader.response(for: DownloadRequest(url: url))
            }
            try #require(after?.code == before?.code)
        }
    }

    @Test(arguments: [
        (ENOENT, "fileNotFound"), (ENOTDIR, "fileNotFound"), (EACCES, "fileUnreadable"), (EIO, "fileUnreadable"),
        (EMFILE, "tooManyOpenFiles"), (ENFILE, "tooManyOpenFiles"), (ENOMEM, "outOfMemory"),
    ])
    func `a file that cannot be opened says why`(code: CInt, name: String) throws {
        let address = try ResourceAddress("file:///a/b.jpg")
        #expect(DownloadError.fileNotOpened("/a/b.jpg", code: code, at: address).code.description == name)
    }

    @Test(.enabled(if: !ThisProcess.isSanitized))
    func `a body that would take the last memory is refused with a code of its own`() async {
        await #expect(processExitsWith: .success) {
            var body = BodyBuffer(limit: 1 << 30)
            let result = await ProcessLimit.withMemory(atMost: 64 << 20) { () -> Bool in
                body.reserve(declared: 512 << 20)
                return body.appendInPlace(maximum: 512 << 20) { _ in 0 } == nil
            }
            try #require(result)
            let address = try ResourceAddress(ShortageTests.closedPort)
            try #require(DownloadError.outOfMemory(at: address).code.description == "outOfMemory")
            // A body that fits is still accepted.
            try #require(body.appendInPlace(maximum: 1 << 20) { _ in 0 } == 0)
        }
    }
}
