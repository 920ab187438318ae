// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@testable import TintypeRendering

/// The use of lanes and of the memory gate.
@Suite(.waiting, .timeLimit(.minutes(5))) struct DecodePipelineTests {
    /// Records the phases in order.
    private final class Recorder: RenderingObserver {
        private let state = Locked<[RenderingPhase]>([])

        var phases: [RenderingPhase] { self.state.withLock { $0 } }

        func didEnd(_ phase: RenderingPhase, since start: ContinuousClock.Instant) {
            self.state.withLock { $0.append(phase) }
        }
    }

    private let gate = WeightedGate(capacity: 64 << 20)

    private var pipeline: DecodePipeline {
        DecodePipeline(
            registry: SampleFiles.registry,
            lanes: GatedLanes(DecodeLanes(count: 1), gate: self.gate, usesIdleLanes: true),
            previewGate: WeightedGate(capacity: 1),
            limits: DecodingLimits()
        )
    }

    @Test func `a small image is planned and made in one visit to a lane`() async throws {
        let data = try SampleFiles.smooth(.jpeg)
        let recorder = Recorder()
        let request = RenderingRequest(thumbnail: .fit(width: 20, height: 20))
        let image = try await self.pipeline.image(from: data, for: request, recorder).image
        #expect(image.width == 20)
        #expect(recorder.phases.count { $0 == .lane } == 1 && !recorder.phases.contains(.gate))
        #expect(self.gate.usedWeight == 0)
    }

    @Test func `a large image is made in a second visit, when the gate has admitted its weight`() async throws {
        let data = try SampleFiles.smooth(.png, width: 1_500, height: 1_000)
        let recorder = Recorder()
        _ = try await self.pipeline.image(from: data, for: RenderingRequest(), recorder)
        #expect(recorder.phases == [.lane, .gate, .lane, .decode])
        #expect(self.gate.usedWeight == 0)
    }

    @Test func `a small image waits while the gate has no room for it`() async throws {
        let data = try SampleFiles.smooth(.png)
        let recorder = Recorder()
        let pipeline = self.pipeline
        var place: WeightedGate.Place? = try await self.gate.place(for: self.gate.capacity)
        let decode = Task { try await pipeline.image(from: data, for: RenderingRequest(), recorder).image.width }
        await until { self.gate.waiterCount == 1 }
        #expect(recorder.phases == [.lane])
        withExtendedLifetime(place) {}
        place = nil
        #expect(try await decode.value == 64)
        #expect(recorder.phases == [.lane, .gate, .lane, .decode])
    }

    @Test func `a small image that fails leaves the gate`() async throws {
        let data = try SampleFiles.smooth(.png).dropLast(40)
        await #expect(throws: CodingError.self) { try await self.pipeline.image(from: data, for: RenderingRequest()) }
        #expect(self.gate.usedWeight == 0)
    }
}
