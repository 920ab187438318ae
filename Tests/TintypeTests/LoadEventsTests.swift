// SPDX-License-Identifier: Apache-2.0

import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@Suite(.waiting, .timeLimit(.minutes(5))) struct LoadEventsTests {
    let fixture: LoaderFixture
    let origin = ScriptedOrigin()
    let body: [UInt8]

    init() throws {
        self.fixture = try LoaderFixture(origin: self.origin)
        self.body = Array(try Fixtures.data("flower.webp"))
    }

    /// The progress values and the final response of a load.
    private func collect(_ events: LoadEvents) async throws -> (progress: [TransferProgress], ends: [ImageResponse]) {
        var progress: [TransferProgress] = []
        var ends: [ImageResponse] = []
        for try await event in events {
            switch event {
            case .progress(let value): progress.append(value)
            case .preview: Issue.record("no preview was asked for")
            case .cached: Issue.record("no cached image was asked for")
            case .finished(let response): ends.append(response)
            }
        }
        return (progress, ends)
    }

    @Test(arguments: [true, false]) func `progress grows to the whole body`(isLengthKnown: Bool) async throws {
        let chunks = stride(from: 0, to: self.body.count, by: 10_000).map {
            Array(self.body[$0..<min($0 + 10_000, self.body.count)])
        }
        var response = ScriptedResponse.pieces(chunks)
        if !isLengthKnown { response.declaredLength = nil }
        self.origin.script("/a", response)
        let events = self.fixture.makeLoader().events(for: ImageRequest(url: self.origin.url("/a")))
        let (progress, ends) = try await self.collect(events)
        #expect(ends.count == 1)
        #expect(ends.first?.source == .network)
        let counts = progress.map(\.receivedBytes)
        #expect(counts == counts.sorted())
        #expect(counts.last == Int64(self.body.count))
        #expect(progress.allSatisfy { $0.expectedBytes == (isLengthKnown ? Int64(self.body.count) : nil) })
    }

    @Test func `a memory hit is exactly the end`() async throws {
        let loader = self.fixture.makeLoader()
        self.origin.script("/a", .body(self.body))
        let request = ImageRequest(url: self.origin.url("/a"))
        _ = try await loader.image(for: request)
        let (progress, ends) = try await self.collect(loader.events(for: request))
        #expect(progress.isEmpty)
        #expect(ends.map(\.source) == [.memory])
    }

    @Test func `two readers share one load and both see its end`() async throws {
        let gate = Gate()
        self.origin.script("/a", .held(by: gate, body: self.body))
        let loader = self.fixture.makeLoader()
        let events = loader.events(for: ImageRequest(url: self.origin.url("/a")))
        async let first = self.collect(events)
        async let second = self.collect(events)
        await until { await loader.waiterCount == 2 }
        await gate.open()
        #expect(try await first.ends.count == 1)
        #expect(try await second.ends.count == 1)
        #expect(self.origin.requestCount(for: "/a") == 1)
    }

    @Test func `a failure is thrown once and then the sequence is over`() async throws {
        let none = ImageRequest(url: self.origin.url("/none"))
        var iterator = self.fixture.makeLoader().events(for: none).makeAsyncIterator()
        let error = await #expect(throws: LoadError.self) { try await iterator.next() }
        #expect(error?.code == .badStatus)
        #expect(try await iterator.next() == nil)
    }

    @Test func `leaving the loop ends the load`() async throws {
        self.origin.script("/a", .pieces([[1, 2, 3], [4]], movedBy: [Gate()]))
        let loader = self.fixture.makeLoader()
        for try await event in loader.events(for: ImageRequest(url: self.origin.url("/a"))) {
            guard case .progress(let progress) = event else { continue }
            #expect(progress.receivedBytes == 3)
            break
        }
        await self.origin.waitForCancellations(for: "/a")
        await until { await loader.loadCount == 0 }
    }

    @Test func `cancelling the reader ends the load`() async throws {
        self.origin.script("/a", .silence)
        let loader = self.fixture.makeLoader()
        let reader = Task {
            for try await _ in loader.events(for: ImageRequest(url: self.origin.url("/a"))) {}
        }
        await self.origin.waitForRequests(for: "/a")
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        await self.origin.waitForCancellations(for: "/a")
    }
}
