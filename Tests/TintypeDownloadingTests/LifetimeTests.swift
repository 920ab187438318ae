// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeDownloading

@Suite(.waiting, .timeLimit(.minutes(5)))
struct LifetimeTests {
    /// Creates a downloader that opens `gate` when the thread of its loop ends.
    private func makeDownloader(opening gate: Gate) -> DownloadActor {
        DownloadActor(configuration: .init(), loopDidEnd: { Task { await gate.open() } })
    }

    @Test func `the thread ends when the downloader goes away`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])])
        let hasEnded = Gate()
        do {
            let downloader = self.makeDownloader(opening: hasEnded)
            _ = try await downloader.body(at: origin.url("/a"))
        }
        await hasEnded.wait()
    }

    @Test func `connections are closed when the downloader goes away`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        do {
            let downloader = DownloadActor.patient()
            _ = try await downloader.body(at: origin.url("/a"))
        }
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `a transfer keeps its downloader alive`() async throws {
        let origin = try FaultyOrigin(["/a": .drip([1, 2, 3], size: 1, pauseMilliseconds: 5)])
        let hasEnded = Gate()
        let task: Task<Data, any Error>
        do {
            let downloader = self.makeDownloader(opening: hasEnded)
            task = Task { try await downloader.body(at: origin.url("/a")) }
        }
        #expect(try await task.value == Data([1, 2, 3]))
        await hasEnded.wait()
    }

    @Test func `a cancelled transfer lets its downloader go`() async throws {
        let origin = try FaultyOrigin(["/a": .silence])
        let hasEnded = Gate()
        let task: Task<Data, any Error>
        do {
            let downloader = self.makeDownloader(opening: hasEnded)
            task = Task { try await downloader.body(at: origin.url("/a")) }
        }
        await origin.waitForRequests(for: "/a")
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        await hasEnded.wait()
        await origin.waitForDisconnect(from: "/a")
    }

    @Test func `downloaders come and go`() async throws {
        let origin = try NginxOrigin(files: ["a": Data([1])])
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<100 {
                group.addTask {
                    let hasEnded = Gate()
                    do {
                        let downloader = self.makeDownloader(opening: hasEnded)
                        let task = Task { try await downloader.body(at: origin.url("/a")) }
                        if number % 2 == 0 { task.cancel() }
                        _ = await task.result
                        // The thread starts with the first job, and a task that is cancelled early may not add one.
                        _ = await downloader.counters
                    }
                    await hasEnded.wait()
                }
            }
        }
    }

    @Test func `a downloader that is never used starts no thread`() {
        _ = DownloadActor.patient()
    }

    @Test func `the loop is the actor's executor`() async {
        let downloader = DownloadActor.patient()
        await downloader.expectIsolation()
        #expect(downloader.loop.isIsolatingCurrentContext() == false)
    }
}

extension DownloadActor {
    fileprivate func expectIsolation() {
        self.preconditionIsolated()
        #expect(self.loop.isIsolatingCurrentContext() == true)
    }
}
