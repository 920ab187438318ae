// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeDownloading
import TintypeHTTP
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5)))
struct SharingTests {
    private let downloader = DownloadActor.patient()
    private let door = Latch()

    /// Starts `count` equal requests, and returns when all of them share one transfer.
    private func tasks(_ count: Int, for request: DownloadRequest) async -> [Task<Data, any Error>] {
        let downloader = self.downloader
        let tasks = (0..<count).map { _ in Task { try await downloader.response(for: request).body } }
        await until { await downloader.counters.shared >= count - 1 }
        return tasks
    }

    @Test func `a thousand callers share one request`() async throws {
        let origin = try FaultyOrigin(["/a": .held(by: self.door, body: [1, 2, 3])])
        let tasks = await self.tasks(1_000, for: DownloadRequest(url: origin.url("/a")))
        self.door.open()
        for task in tasks { #expect(try await task.value == Data([1, 2, 3])) }
        #expect(origin.requestCount(for: "/a") == 1)
    }

    @Test func `cancelling all callers but one disturbs nothing`() async throws {
        let origin = try FaultyOrigin(["/a": .held(by: self.door, body: [1, 2, 3])])
        let tasks = await self.tasks(1_000, for: DownloadRequest(url: origin.url("/a")))
        for task in tasks.dropFirst() { task.cancel() }
        for task in tasks.dropFirst() { await #expect(throws: CancellationError.self) { try await task.value } }
        self.door.open()
        #expect(try await tasks[0].value == Data([1, 2, 3]))
        #expect(origin.requestCount(for: "/a") == 1)
    }

    @Test(arguments: [FaultyResponse.silence, .stall(declaredLength: 100, after: [1])])
    func `cancelling all callers closes the connection`(response: FaultyResponse) async throws {
        let origin = try FaultyOrigin(["/a": response])
        let tasks = await self.tasks(10, for: DownloadRequest(url: origin.url("/a")))
        await origin.waitForRequests(for: "/a")
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        await origin.waitForDisconnect(from: "/a")
        let counters = await self.downloader.counters
        #expect(counters.cancelled == 1)
        #expect(counters.active == 0)
    }

    @Test func `cancelAll ends every caller`() async throws {
        let origin = try FaultyOrigin(["/a": .silence])
        let tasks = await self.tasks(10, for: DownloadRequest(url: origin.url("/a")))
        await self.downloader.cancelAll()
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
    }

    @Test func `a cancelled task does not start a transfer`() async throws {
        let origin = try FaultyOrigin(["/a": .body([1])])
        let downloader = self.downloader
        let gate = Gate()
        let task = Task {
            await gate.wait()
            return try await downloader.body(at: origin.url("/a"))
        }
        task.cancel()
        await gate.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(await downloader.counters.started == 0)
    }

    @Test func `a transfer that waits for its turn can be cancelled`() async throws {
        var configuration = DownloadActor.Configuration()
        configuration.maximumTransfers = 1
        let downloader = DownloadActor(configuration: configuration)
        let origin = try FaultyOrigin(["/a": .held(by: self.door, body: [1]), "/b": .body([2]), "/c": .body([3])])
        let first = Task { try await downloader.body(at: origin.url("/a")) }
        await origin.waitForRequests(for: "/a")
        let second = Task { try await downloader.body(at: origin.url("/b")) }
        await until { await downloader.counters.waiting >= 1 }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        self.door.open()
        #expect(try await first.value == Data([1]))
        #expect(try await downloader.body(at: origin.url("/c")) == Data([3]))
        #expect(origin.requestCount(for: "/b") == 0)
    }

    @Test func `a request after a cancelled one starts anew`() async throws {
        let origin = try FaultyOrigin(["/a": .silence])
        let request = DownloadRequest(url: origin.url("/a"))
        let tasks = await self.tasks(2, for: request)
        await origin.waitForRequests(for: "/a")
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        origin.script("/a", .body([4]))
        #expect(try await self.downloader.response(for: request).body == Data([4]))
    }

    @Test func `an error reaches every caller`() async throws {
        let latch = self.door
        let origin = try FaultyOrigin(["/a": FaultyResponse([.wait(latch), FaultyResponse.head(500)] + [.close])])
        let tasks = await self.tasks(50, for: DownloadRequest(url: origin.url("/a")))
        latch.open()
        for task in tasks {
            let error = await #expect(throws: DownloadError.self) { try await task.value }
            #expect(error?.code == .badStatus)
        }
    }

    @Test func `requests that differ in headers or policy do not share`() async throws {
        let origin = try FaultyOrigin(["/a": .held(by: self.door, body: [1])])
        let plain = DownloadRequest(url: origin.url("/a"))
        var anna = plain
        anna.headers["Authorization"] = "Bearer anna"
        var bert = plain
        bert.headers["Authorization"] = "Bearer bert"
        var trusting = plain
        trusting.allowsInvalidCertificates = true
        var small = plain
        small.maximumBodySize = 10
        let downloader = self.downloader
        try await withThrowingTaskGroup(of: Void.self) { group in
            for request in [plain, anna, bert, trusting, small] {
                group.addTask { _ = try await downloader.response(for: request) }
            }
            await origin.waitForRequests(5, for: "/a")
            self.door.open()
            try await group.waitForAll()
        }
    }

    @Test func `starting and cancelling at random loses no caller`() async throws {
        let origin = try NginxOrigin(files: ["a": pattern(3_000)])
        let downloader = self.downloader
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<400 {
                group.addTask {
                    let task = Task { try await downloader.body(at: origin.url("/a?\(number % 20)")) }
                    for _ in 0..<(number * 7 % 13) { await Task.yield() }
                    if number % 3 == 0 { task.cancel() }
                    switch await task.result {
                    case .success(let body): #expect(body.count == 3_000)
                    case .failure(let error): #expect(error is CancellationError)
                    }
                }
            }
        }
        let counters = await downloader.counters
        #expect(counters.active == 0)
        #expect(counters.waiting == 0)
        #expect(counters.started == counters.succeeded + counters.cancelled)
    }
}
