// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import Tintype

/// The memory that stale bytes take during their revalidation.
@Suite(.waiting, .timeLimit(.minutes(5))) struct StaleMemoryTests {
    private static let count = 12
    private static let limit = 300_000

    private let scripted = ScriptedOrigin()
    private let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture(origin: self.scripted)
    }

    private func makeLoader() -> LoaderActor {
        self.fixture.makeLoader { configuration in
            configuration.cachePolicy = .honorFreshness
            configuration.downloads.bodyMemory = Self.limit
            configuration.disk?.pendingByteLimit = 1 << 30
        }
    }

    @Test(arguments: [200, 304, 503]) func `they leave room to others`(status: Int) async throws {
        let padding = [UInt8](repeating: 0, count: 120_000)
        let (old, new) = (try makePNG(width: 8) + padding, try makePNG(width: 9) + padding)
        let fields: HeaderFields = ["Cache-Control": "max-age=0, stale-if-error=600", "ETag": "\"a\""]
        let requests = (0..<Self.count).map {
            ImageRequest(url: self.scripted.url("/\($0)"), options: [.waitForStore])
        }
        let first = self.makeLoader()
        for (index, request) in requests.enumerated() {
            self.scripted.script("/\(index)", .body(old, headers: fields))
            _ = try await first.data(for: request)
        }
        let gate = Gate()
        for index in 0..<Self.count {
            var answer = ScriptedResponse.body(status == 200 ? new : [], status: status, headers: fields)
            answer.steps.insert(.wait(gate), at: 0)
            self.scripted.script("/\(index)", answer)
        }
        let loader = self.makeLoader()
        let tasks = requests.map { request in Task { try await loader.image(for: request).width } }
        // The loader revalidates all of them at once, however much memory their bytes take.
        for index in 0..<Self.count { await self.scripted.waitForRequests(2, for: "/\(index)") }
        #expect(await loader.downloads.counters.bodyBytes <= Self.limit / 2)
        await gate.open()
        for task in tasks { #expect(try await task.value == (status == 200 ? 9 : 8)) }
        await until { await loader.downloads.counters.bodyBytes == 0 }
    }
}
