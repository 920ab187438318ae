// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeConcurrency
import TintypeDownloading
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct SchedulingTests {
    private let origin: FaultyOrigin
    private let door = Latch()

    init() throws {
        self.origin = try FaultyOrigin(["/door": .held(by: self.door, body: [1])])
        for number in 1...14 { self.origin.script("/\(number)", .body([UInt8(number)])) }
    }

    private func downloader(_ change: (inout DownloadActor.Configuration) -> Void = { _ in }) -> DownloadActor {
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = 1
        change(&configuration)
        return DownloadActor(configuration: configuration)
    }

    /// Starts a request, and returns when it waits in the queue.
    private func ask(
        _ number: Int,
        _ priority: DownloadPriority = .normal,
        of downloader: DownloadActor,
        _ finished: Recorder<Int>
    ) async -> Task<Void, any Error> {
        let before = await downloader.counters.started
        let request = DownloadRequest(url: self.origin.url("/\(number)"))
        let task = Task {
            let response = try await downloader.response(for: request, priority: priority)
            finished.record(Int(response.body[0]))
        }
        await until { await downloader.counters.started != before }
        return task
    }

    private func order(
        _ asked: [(Int, DownloadPriority)],
        of downloader: DownloadActor,
        by clients: [Int: WorkClient] = [:],
        meanwhile: () async -> Void = {}
    ) async throws -> [Int] {
        let events = downloader.events()
        await downloader.suspend()
        let finished = Recorder<Int>()
        var tasks: [Task<Void, any Error>] = []
        for (number, priority) in asked {
            let task = await WorkClient.$current.withValue(clients[number]) {
                await self.ask(number, priority, of: downloader, finished)
            }
            tasks.append(task)
        }
        await meanwhile()
        await downloader.resume()
        for task in tasks { try await task.value }
        // Callers may resume in any order, but the events come in the order of the loop.
        var order: [Int] = []
        for await event in events {
            if case .finished = event.kind { order.append(Int(event.url.lastPathComponent) ?? 0) }
            if order.count == asked.count { break }
        }
        return order
    }

    @Test func `first come, first served`() async throws {
        let asked = (1...7).map { ($0, DownloadPriority.normal) }
        #expect(try await self.order(asked, of: self.downloader()) == Array(1...7))
    }

    @Test func `clients take turns`() async throws {
        let (first, second) = (WorkClient(number: 1), WorkClient(number: 2))
        let clients = [1: first, 2: first, 3: first, 4: second, 5: second]
        let asked = (1...5).map { ($0, DownloadPriority.normal) }
        #expect(try await self.order(asked, of: self.downloader(), by: clients) == [1, 4, 2, 3, 5])
    }

    @Test func `the target of a redirect at the same origin belongs to the same turn`() async throws {
        self.origin.script("/13", .redirect(to: "/1"))
        let asked = [13, 2, 3].map { ($0, DownloadPriority.normal) }
        let client = WorkClient(number: 1)
        let clients = [13: client, 2: client, 3: client]
        #expect(try await self.order(asked, of: self.downloader(), by: clients) == [1, 2, 3])
    }

    @Test func `the last that came is first where the configuration says so`() async throws {
        let downloader = self.downloader { $0.order = .lastInFirstOut }
        let asked = (1...7).map { ($0, DownloadPriority.normal) }
        #expect(try await self.order(asked, of: downloader) == Array((1...7).reversed()))
    }

    @Test func `those that come later overtake those that wait, last in first out`() async throws {
        let downloader = self.downloader { $0.order = .lastInFirstOut }
        let started = Recorder<String>()
        let events = downloader.events()
        let door = DownloadRequest(url: self.origin.url("/door"))
        let first = Task { _ = try await downloader.response(for: door) }
        await self.origin.waitForRequests(for: "/door")
        let finished = Recorder<Int>()
        var tasks = [first]
        for number in 2...14 { tasks.append(await self.ask(number, of: downloader, finished)) }
        self.door.open()
        for task in tasks { try await task.value }
        for await event in events {
            if case .finished = event.kind { started.record(event.url.lastPathComponent) }
            if started.elements.count == 14 { break }
        }
        #expect(started.elements == ["door"] + (2...14).reversed().map(String.init))
    }

    @Test func `the most urgent starts first`() async throws {
        let asked: [(Int, DownloadPriority)] = [
            (1, .veryLow), (2, .normal), (3, .veryHigh), (4, .low), (5, .high), (6, .normal),
        ]
        #expect(try await self.order(asked, of: self.downloader()) == [3, 5, 2, 6, 4, 1])
    }

    @Test func `a caller that joins makes a transfer more urgent, and less when it leaves`() async throws {
        let downloader = self.downloader()
        let url = self.origin.url("/3")
        let asked: [(Int, DownloadPriority)] = [(1, .normal), (2, .normal), (3, .low)]
        let order = try await self.order(asked, of: downloader) {
            let joined = Task { try await downloader.response(for: DownloadRequest(url: url), priority: .high) }
            await until { await downloader.counters.shared >= 1 }
            let left = Task {
                try await downloader.response(for: DownloadRequest(url: self.origin.url("/1")), priority: .veryHigh)
            }
            await until { await downloader.counters.shared >= 2 }
            left.cancel()
            _ = await left.result
            // The task of the remaining caller ends with the transfer.
            _ = joined
        }
        #expect(order == [3, 1, 2])
    }

    @Test func `a priority can be changed while the transfer waits`() async throws {
        let downloader = self.downloader()
        let request = DownloadRequest(url: self.origin.url("/2"))
        let asked: [(Int, DownloadPriority)] = [(1, .normal), (2, .low), (3, .normal)]
        let order = try await self.order(asked, of: downloader) {
            await downloader.setPriority(.veryHigh, for: request)
        }
        #expect(order == [2, 1, 3])
    }

    @Test func `a suspended downloader starts nothing`() async throws {
        let downloader = self.downloader()
        await downloader.suspend()
        let task = await self.ask(1, of: downloader, Recorder())
        #expect(await downloader.counters.waiting == 1)
        #expect(await downloader.counters.active == 0)
        #expect(self.origin.requestCount(for: "/1") == 0)
        await downloader.resume()
        try await task.value
    }

    @Test func `a rate limit lets a burst through, then one at a time`() async throws {
        let downloader = self.downloader {
            $0.maximumTransfers = 64
            $0.rateLimit = RateLimit(requestsPerSecond: 20, burst: 3)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...6 {
                group.addTask { _ = try await downloader.body(at: self.origin.url("/\(number)")) }
            }
            try await group.waitForAll()
        }
    }
}
