// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.waiting, .timeLimit(.minutes(5)))
struct ShutdownTests {
    @Test func `threads and descriptors are given back before it returns`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1, 2, 3])])
        let address = origin.url("/a").absoluteString
        // Use a process of its own, because threads and descriptors of other tests would count.
        await #expect(processExitsWith: .success) { [address = address as String] in
            let folder = try TemporaryDirectory()
            // The system opens some descriptors once and keeps them, for example for the first timer. Wait here to open
            // them all.
            var looks = 0
            await until {
                looks += 1
                // After so many checks, `until` has slept and not only yielded.
                return looks > 101
            }
            try await ShutdownTests.use(address, folder)
            let before = ThisProcess.descriptorCount
            for _ in 0..<20 { try await ShutdownTests.use(address, folder) }
            // A joined thread may stay visible for a moment, and the runtime opens a file now and then.
            await until { !ThisProcess.threadNames.contains { $0.hasPrefix("tintype-") } }
            await until { ThisProcess.descriptorCount <= before }
        }
    }

    /// Lets a downloader use a thread, connections and files, and shuts it down.
    private static func use(_ address: String, _ folder: TemporaryDirectory) async throws {
        var configuration = DownloadActor.Configuration()
        configuration.partialBodies = .init(directory: folder.path(of: "parts"))
        let downloader = DownloadActor(configuration: configuration)
        let file = try folder.write([1], to: "file")
        _ = try await downloader.body(at: URL(filePath: file))
        try await withThrowingTaskGroup(of: Data.self) { group in
            for number in 0..<12 {
                let url = try url("\(address)?\(number)")
                group.addTask { try await downloader.body(at: url) }
            }
            for try await body in group { #expect(body == Data([1, 2, 3])) }
        }
        try #require(ThisProcess.threadNames.contains("tintype-curl"))
        await downloader.shutdown()
        await until { !ThisProcess.threadNames.contains("tintype-curl") }
        // The actor still answers after the shutdown.
        try #require(await downloader.counters.active == 0)
    }

    @Test func `downloads end, and what is asked for later fails`() async throws {
        let origin = try FaultyOrigin(["/a": .silence, "/b": .body([1])])
        let downloader = DownloadActor()
        let events = downloader.events()
        let waiting = Task { try await downloader.body(at: origin.url("/a")) }
        await origin.waitForRequests(for: "/a")
        await downloader.shutdown()
        #expect(await waiting.result.isCancellation)
        await origin.waitForDisconnect(from: "/a")
        var kinds = 0
        for await _ in events { kinds += 1 }
        #expect(kinds > 0)
        await downloader.shutdown()
        for await _ in downloader.events() { Issue.record("nothing happens any more") }
        for address in [origin.url("/b"), URL(filePath: "/etc/hostname"), try url("data:,a")] {
            #expect(try await downloader.error(at: address).code == .shutDown)
        }
        let error = await #expect(throws: DownloadError.self) {
            try await downloader.stream(for: DownloadRequest(url: origin.url("/b")))
        }
        #expect(error?.code == .shutDown)
        #expect(origin.requestCount(for: "/b") == 0)
    }

    @Test func `a downloader that was never used starts no thread for it`() async {
        let starts = Recorder<String>()
        let downloader = DownloadActor(
            configuration: .init(),
            startThread: { (name, main) throws(ThreadError) in
                starts.record(name)
                return try POSIXThread.start(name: name, main)
            },
            loopDidEnd: nil
        )
        await downloader.shutdown()
        await downloader.shutdown()
        #expect(await downloader.counters.started == 0)
        #expect(starts.elements.isEmpty)
    }

    @Test func `a call beside another one returns when all is given back`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        let mayEnd = Latch()
        let downloader = DownloadActor(configuration: .init(), loopDidEnd: { mayEnd.wait() })
        _ = try await downloader.body(at: origin.url("/a"))
        let returns = Recorder<Int>()
        let calls = (0..<2).map { number in
            Task {
                await downloader.shutdown()
                returns.record(number)
            }
        }
        // So many turns are enough for a call that does not wait.
        for _ in 0..<1_000 { await Task.yield() }
        #expect(returns.elements.isEmpty)
        mayEnd.open()
        for call in calls { await call.value }
        #expect(returns.elements.count == 2)
    }

    @Test func `the first bytes of what it breaks off are on disk when it returns`() async throws {
        let content = Array(pattern(20_000))
        let fields = [("ETag", "\"v1\""), ("Accept-Ranges", "bytes"), ("Content-Length", "\(content.count)")]
        let door = Latch()
        let first = FaultyResponse([FaultyResponse.head(200, fields), .send(Array(content[..<9_000])), .wait(door)])
        let rest = FaultyResponse.body(
            Array(content[9_000...]),
            status: 206,
            headers: [("ETag", "\"v1\""), ("Content-Range", "bytes 9000-19999/20000")]
        )
        let origin = try FaultyOrigin(["/a": .either(part: rest, whole: first)])
        let folder = try TemporaryDirectory()
        var configuration = DownloadActor.Configuration()
        configuration.partialBodies = .init(directory: folder.path(of: "parts"))
        let shown = Recorder<TransferProgress>()
        let broken = DownloadActor(configuration: configuration)
        let request = DownloadRequest(url: origin.url("/a"))
        let task = Task { try await broken.response(for: request, observer: { shown.record($0) }) }
        await until { shown.elements.last?.receivedBytes == 9_000 }
        await broken.shutdown()
        #expect(await task.result.isCancellation)
        door.open()
        let next = DownloadActor(configuration: configuration)
        #expect(try await next.response(for: request).metrics.resumedBytes == 9_000)
        await next.shutdown()
    }

    @Test func `calls at once, from many tasks, all return`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])])
        for _ in 0..<20 {
            let downloader = DownloadActor()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        if number.isMultiple(of: 2) { return await downloader.shutdown() }
                        _ = try? await downloader.body(at: origin.url("/a?\(number)"))
                    }
                }
            }
        }
    }
}
