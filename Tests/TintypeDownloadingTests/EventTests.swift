// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct EventTests {
    private func name(_ event: DownloadEvent) -> String {
        switch event.kind {
        case .refused(let error): "refused \(error.code)"
        case .started: "started"
        case .receivedHead(let status): "head \(status)"
        case .retrying: "retrying"
        case .finished(let metrics): "finished \(metrics.bytes)"
        case .failed(let error): "failed \(error.code)"
        case .cancelled: "cancelled"
        }
    }

    @Test func `each transfer tells its story to every observer`() async throws {
        let origin = try FaultyOrigin([
            "/a": .redirect(to: "/b"), "/b": .body([1, 2]), "/c": .body([], status: 404), "/d": .silence,
        ])
        let downloader = DownloadActor.patient()
        let streams = [downloader.events(), downloader.events()]
        _ = try await downloader.body(at: origin.url("/a"))
        _ = try await downloader.error(at: origin.url("/c"))
        let task = Task { try await downloader.body(at: origin.url("/d")) }
        await origin.waitForRequests(for: "/d")
        task.cancel()
        _ = await task.result
        for stream in streams {
            var names: [String] = []
            for await event in stream {
                names.append(self.name(event))
                if names.last == "cancelled" { break }
            }
            #expect(
                names == [
                    "started", "head 302", "head 200", "finished 2", "started", "head 404", "failed badStatus",
                    "started", "cancelled",
                ]
            )
        }
    }

    @Test func `an observer that does not keep up loses the oldest`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1, 2])])
        let downloader = DownloadActor.patient()
        let events = downloader.events(bufferSize: 2)
        for _ in 0..<5 { _ = try await downloader.body(at: origin.url("/a")) }
        var ids: [UInt64] = []
        for await event in events {
            ids.append(event.transferID)
            if ids.count == 2 { break }
        }
        #expect(ids == [5, 5])
    }

    @Test func `the stream ends with the downloader`() async throws {
        let events: AsyncStream<DownloadEvent>
        do {
            let downloader = DownloadActor.patient()
            events = downloader.events()
            _ = await downloader.counters
        }
        for await _ in events {}
    }

    @Test func `no event shows credentials`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        let downloader = DownloadActor.patient()
        let events = downloader.events()
        _ = try await downloader.body(at: try url("http://user:s3cret@127.0.0.1:\(origin.port)/a"))
        for await event in events {
            #expect(!"\(event.url)".contains("s3cret"))
            if case .finished = event.kind { break }
        }
    }
}
