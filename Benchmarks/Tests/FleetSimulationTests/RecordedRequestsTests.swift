// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FleetSimulation

@Suite struct RecordedRequestsTests {
    @Test func `lines name a time, a node, a source and a size`() throws {
        let text = """
            # a comment

            0.5 1 https://example.org/a.jpg 300
            0.25\t0\thttps://example.org/b.jpg\t300
            0.75 - https://example.org/a.jpg 600
            0.75 2 https://example.org/a.jpg 300
            """
        let recorded = try RecordedRequests(text: text, nodeCount: 3)
        #expect(recorded.sourceCount == 2)
        #expect(recorded.sources == [0, 1, 0])
        #expect(
            recorded.requests == [
                Request(time: 0, result: 3, node: 0), Request(time: 0.25, result: 2, node: 1),
                Request(time: 0.5, result: 4, node: nil), Request(time: 0.5, result: 2, node: 2),
            ]
        )
    }

    @Test(arguments: ["0 0 a", "x 0 a 1", "0 3 a 1", "0 -1 a 1", "-1 0 a 1", "inf 0 a 1", "0 0 a 1 2", "0 b a 1"])
    func `the error names the line that cannot be read`(line: String) {
        let error = #expect(throws: RecordedRequests.Failure.self) {
            try RecordedRequests(text: "0 0 a 1\n\(line)\n", nodeCount: 3)
        }
        #expect(error?.line == 2)
    }

    @Test func `lines may end as on other systems`() throws {
        #expect(try RecordedRequests(text: "0 0 a 1\r\n0 1 a 1\r\n", nodeCount: 2).requests.map(\.node) == [0, 1])
    }

    @Test func `a trace has keys, and bytes of which the first count`() throws {
        let trace = try RequestTrace(text: "0 10\n1 20\n0 99\n")
        #expect(trace.keys == [0, 1, 0])
        #expect(trace.bytes == [10, 20])
        #expect(trace.hasSizes)
        #expect(trace.counts == [2, 1])
        #expect(trace.catalogue(sourceBytes: 7, resultBytes: 5).bytes == [10, 20, 10, 20])
        let plain = try RequestTrace(text: "0\n1\n")
        #expect(plain.bytes == [1, 1])
        #expect(plain.catalogue(sourceBytes: 7, resultBytes: 5).bytes == [7, 7, 5, 5])
        #expect(plain.requests(rate: 4) == [Request(time: 0, result: 2), Request(time: 0.25, result: 3)])
        #expect(throws: RequestTrace.Failure.self) { try RequestTrace(text: "0\nb\n") }
    }
}
