// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeConcurrency
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Lanes for which the system refuses to start threads.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LaneShortageTests {
    @Test(arguments: [(ThreadError.Code.tooManyThreads, "tooManyThreads"), (.outOfMemory, "outOfMemory")])
    func `work without any thread fails with a typed error, and later work tries again`(
        code: ThreadError.Code,
        name: String
    ) async throws {
        let lanes = DecodeLanes(count: 2, startThread: ThreadRefusals(2, code).start)
        for _ in 0..<2 {
            let error = await #expect(throws: CodingError.self) { try await lanes.run { 1 } }
            #expect(error?.code.description == name)
        }
        #expect(try await lanes.run { ThisProcess.threadName }.hasPrefix("tintype-code-"))
    }

    @Test func `work goes on with the lanes that have a thread`() async throws {
        let refusals = ThreadRefusals(0)
        let lanes = DecodeLanes(count: 4, startThread: refusals.start)
        #expect(try await lanes.run { ThisProcess.threadName } == "tintype-code-0")
        refusals.refuse(.max)
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<40 { group.addTask { try await lanes.run { ThisProcess.threadName } } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(names == ["tintype-code-0"])
        #expect(lanes.leastLoaded === lanes.leastLoaded)
        #expect(lanes.leastLoaded.isStarted)
    }
}
