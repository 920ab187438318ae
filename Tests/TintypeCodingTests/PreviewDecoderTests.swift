import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import TintypeCoding
import TintypeConcurrency
import TintypeImage

/// What previews may take while bytes arrive.
@Suite(.computing, .timeLimit(.minutes(10))) struct PreviewDecoderTests {
    private static func previewCount(
        of data: Data,
        gate: WeightedGate? = nil,
        limits: DecodingLimits = DecodingLimits(),
        pieceCount: Int = 8,
        eachPiece: (WeightedGate?) -> Void = { _ in }
    ) async -> Int {
        let decoder = PreviewDecoder(
            registry: SampleFiles.registry,
            options: DecodeOptions(limits: limits),
            lanes: DecodeLanes(count: 1),
            gate: gate
        )
        var count = 0
        let step = data.count / pieceCount + 1
        for start in stride(from: 0, to: data.count, by: step) {
            if await decoder.append(data.dropFirst(start).prefix(step)) != nil { count += 1 }
            eachPiece(gate)
        }
        return count
    }

    @Test(arguments: [ImageFormat.jpeg, .png]) func `previews are weighed for as long as they are made`(
        format: ImageFormat
    ) async throws {
        let data = try SampleFiles.smooth(format, width: 640, height: 480)
        let gate = WeightedGate(capacity: 4 * 640 * 480 * 4)
        let weights = Locked<[Int]>([])
        let count = await Self.previewCount(of: data, gate: gate) { gate in
            weights.withLock { $0.append(gate?.usedWeight ?? 0) }
        }
        #expect(count > 1)
        #expect(weights.withLock { $0.contains { $0 >= 2 * 640 * 480 * 3 } })
        #expect(gate.usedWeight == 0)
    }

    @Test(arguments: [ImageFormat.jpeg, .png]) func `without room there are no previews`(
        format: ImageFormat
    ) async throws {
        let data = try SampleFiles.smooth(format, width: 640, height: 480)
        let gate = WeightedGate(capacity: 640 * 480 * 3)
        #expect(await Self.previewCount(of: data, gate: gate) == 0)
        #expect(gate.usedWeight == 0)
    }

    /// Of bytes that come one by one a flat picture shows another row each time, and each preview is a whole copy.
    @Test func `the work of all previews together is limited`() async throws {
        let data = SlowFiles.flatPNG(500, 500).data
        let all = await Self.previewCount(of: data, pieceCount: 50)
        #expect(all > 40)
        let limited = await Self.previewCount(
            of: data,
            limits: DecodingLimits(maximumWork: 1_300_000),
            pieceCount: 50
        )
        #expect(limited > 5)
        #expect(limited <= 10)
    }

    /// A flat picture costs little more to decode than a copy of it.
    @Test(arguments: [false, true]) func `previews of a large picture take little more than the picture`(
        isInterlaced: Bool
    ) async throws {
        var file = SlowFiles.flatPNG(4_000, 4_000, colorType: 6)
        if isInterlaced {
            file.chunks[0].body[12] = 1
            file.chunks[1].body = Array(SlowFiles.zeros(4_000 * 4_000 * 4 + 4_000 / 8 * 15))
        }
        let spent = Locked(0)
        let observer = DecodeWork.Observer { units in spent.withLock { $0 = max($0, units) } }
        let count = await DecodeWork.$observer.withValue(observer) {
            await Self.previewCount(of: file.data, pieceCount: 50)
        }
        #expect(count > 1)
        #expect(count <= 12)
        // Of one meter: of the decoder's, or of the previews'.
        #expect(spent.withLock { $0 } < 4_000 * 4_000 * 8)
    }
}
