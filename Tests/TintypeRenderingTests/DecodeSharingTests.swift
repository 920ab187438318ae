// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@testable import TintypeRendering

/// Shares of loads of the same body in common decodes.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DecodeSharingTests {
    private func makePipeline() -> DecodePipeline {
        DecodePipeline(
            registry: CoderRegistry(coders: [JPEGCoder()]),
            lanes: GatedLanes(DecodeLanes(count: 1), gate: WeightedGate(capacity: 64 << 20), usesIdleLanes: false),
            previewGate: WeightedGate(capacity: 1),
            limits: DecodingLimits()
        )
    }

    private func makeParts(_ widths: [Int]) throws -> [DecodeSharing.Part] {
        let requests = widths.enumerated().map { index, width in
            (DecodeSharing.ID(index), RenderingRequest(thumbnail: .fit(width: width, height: width)))
        }
        let parts = DecodeSharing.parts(
            of: try Fixtures.data("flower.jpg"),
            for: Dictionary(uniqueKeysWithValues: requests)
        )
        return try widths.indices.map { try #require(parts[DecodeSharing.ID($0)]) }
    }

    @Test func `a result is kept for a load that comes late, until its part ends`() async throws {
        let decoding = self.makePipeline()
        let parts = try self.makeParts([60, 70, 80])
        let shares = try await [
            #require(parts[0].plan(by: decoding)?.share), #require(parts[1].plan(by: decoding)?.share),
        ]
        do {
            let result = try await decoding.step(of: shares[0], nil)
            parts[0].sharing.keep(result, of: shares[0])
        }
        parts[0].end()
        parts[0].end()
        parts[1].end()
        #expect(decoding.lanes.gate.usedWeight == shares[0].byteCount)
        let late = try await #require(parts[2].plan(by: decoding)?.share)
        #expect(parts[2].sharing.result(of: late) != nil)
        parts[2].end()
        #expect(decoding.lanes.gate.usedWeight == 0)
        #expect(parts[2].sharing.result(of: late) == nil)
        let ended = try await parts[2].plan(by: decoding)
        #expect(ended == nil)
    }

    @Test func `the part of a load that has left without a word has ended`() async throws {
        let decoding = self.makePipeline()
        var parts = try self.makeParts([500, 60, 70, 80])
        let largest = try await #require(parts[0].plan(by: decoding)?.share)
        #expect(try await #require(parts[1].plan(by: decoding)?.share).layout == largest.layout)

        // A load that leaves before the plans are made does not count for the division.
        parts = Array(try self.makeParts([500, 60, 70, 80]).dropFirst())
        let share = try await #require(parts[0].plan(by: decoding)?.share)
        #expect(share.layout.width < largest.layout.width)

        // The last part releases the result.
        parts[0].sharing.keep(try await decoding.step(of: share, nil), of: share)
        #expect(decoding.lanes.gate.usedWeight == share.byteCount)
        parts = []
        #expect(decoding.lanes.gate.usedWeight == 0)
    }

    @Test func `the last load left shares nothing`() async throws {
        let decoding = self.makePipeline()
        let parts = try self.makeParts([60, 70])
        parts[0].end()
        let last = try await #require(parts[1].plan(by: decoding))
        #expect(last.share == nil)
    }

    @Test func `the weight of a decode counts every image that is made of it`() async throws {
        let decoding = self.makePipeline()
        let (two, three) = (try self.makeParts([60, 70]), try self.makeParts([60, 70, 80]))
        let small = try await #require(two[0].plan(by: decoding)?.share)
        let large = try await #require(three[0].plan(by: decoding)?.share)
        #expect(small.layout == large.layout)
        let third = try await #require(three[2].plan(by: decoding)).plan
        #expect(large.byteCount - small.byteCount == third.partByteCount(of: large.layout))
    }
}
