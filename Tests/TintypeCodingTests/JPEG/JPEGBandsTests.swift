// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConcurrency
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Checks that several lanes that decode bands produce the same image as one lane.
@Suite(.computing, .timeLimit(.minutes(5))) struct JPEGBandsTests {
    private static func open(
        _ data: Data,
        _ shortcuts: JPEGCoder.Shortcuts = .entropyDecodingOfSmallFiles
    ) throws -> EncodedJPEG {
        try EncodedJPEG(data, limits: DecodingLimits(), shortcuts: shortcuts)
    }

    private static func options(_ data: Data, divisor: Int) throws -> DecodeOptions {
        let header = try Self.open(data).header
        let size = PixelSize(width: header.pixelWidth / divisor, height: header.pixelHeight / divisor)
        return DecodeOptions(sufficientSize: size)
    }

    /// Decodes the bands alternately, as three lanes would, or returns `nil` if the file has no bands.
    private static func divided(
        _ data: Data,
        divisor: Int,
        _ shortcuts: JPEGCoder.Shortcuts = .entropyDecodingOfSmallFiles
    ) throws -> [UInt8]? {
        let options = try Self.options(data, divisor: divisor)
        guard let bands = try Self.open(data, shortcuts).bands(options: options, pixelsPerBand: 0) else { return nil }
        #expect(bands.count > 1)
        let pixels = try PixelBuffer(
            bands.layout,
            fillingUnsafely: { memory in
                for (isFirst, count) in [(false, 1), (true, 1), (false, 2), (false, Int.max)] {
                    var left = count
                    try bands.decode(into: memory, isFirst: isFirst) {
                        left -= 1
                        return left < 0
                    }
                }
            }
        )
        return pixels.samples
    }

    private static func whole(
        _ data: Data,
        divisor: Int,
        _ shortcuts: JPEGCoder.Shortcuts = .entropyDecodingOfSmallFiles
    ) throws -> [UInt8] {
        try Self.open(data, shortcuts).decode(options: Self.options(data, divisor: divisor)).image.pixels.samples
    }

    // MARK: Images

    /// Covers chroma factors and restart intervals for images whose rows have 19 or 10 units.
    @Test(arguments: [(1, 1, 19), (1, 1, 57), (1, 2, 19), (2, 1, 10), (2, 1, 5), (2, 2, 10), (2, 2, 4), (2, 2, 2)])
    func `images are the same at every size`(across: Int, down: Int, restartInterval: Int) throws {
        for hasOwnTables in [false, true] {
            let data = Data(
                try JPEGEntropyTests.file(
                    height: 215,
                    quality: 85,
                    across: across,
                    down: down,
                    restartInterval: restartInterval,
                    hasOwnTables: hasOwnTables
                )
            )
            for divisor in [1, 2, 4, 8] {
                for shortcuts in [[], JPEGCoder.Shortcuts.entropyDecodingOfSmallFiles] {
                    let samples = try #require(try Self.divided(data, divisor: divisor, shortcuts))
                    #expect(try samples == Self.whole(data, divisor: divisor, shortcuts), "\(divisor)")
                }
            }
        }
    }

    /// The sampling factors of a single component have no effect.
    @Test(arguments: [UInt8(0x11), 0x22]) func `gray images are the same`(factors: UInt8) throws {
        var file = try JPEGEntropyTests.file(width: 151, height: 109, components: 1, restartInterval: 19)
        let frame = try #require(Data(file).firstRange(of: Data([0xFF, 0xC0])))
        file[frame.lowerBound + 11] = factors
        for divisor in [1, 2, 4, 8] {
            let samples = try #require(try Self.divided(Data(file), divisor: divisor))
            #expect(try samples == Self.whole(Data(file), divisor: divisor))
        }
    }

    @Test(.enabled(if: Corpus.isRead)) func `files of the corpus are the same`() throws {
        var count = 0
        for image in Corpus.images where image.format == "jpeg" {
            let data = try image.data
            guard let encoded = try? Self.open(data), encoded.header.pixelWidth < 2_000 else { continue }
            for divisor in [1, 8] {
                guard let samples = try? Self.divided(data, divisor: divisor) else { continue }
                #expect(try samples == Self.whole(data, divisor: divisor), "\(image.path)")
                count += 1
            }
        }
        #expect(count >= 8)
    }

    // MARK: Damage

    /// Returns the offsets of the restart markers in a file.
    private static func markers(of file: [UInt8]) throws -> [Int] {
        let scan = try #require(Data(file).firstRange(of: Data([0xFF, 0xDA]))).upperBound
        return (scan..<file.count - 1).filter { file[$0] == 0xFF && (0xD0...0xD7).contains(file[$0 + 1]) }
    }

    @Test func `files with anything wrong about their markers have no bands`() throws {
        let file = try JPEGEntropyTests.file(across: 2, down: 2, restartInterval: 10)
        let markers = try Self.markers(of: file)
        try #require(markers.count == 6)
        func bands(_ change: (inout [UInt8]) -> Void) throws -> JPEGBands? {
            var file = file
            change(&file)
            let data = Data(file)
            return try Self.open(data).bands(options: Self.options(data, divisor: 1), pixelsPerBand: 0)
        }
        #expect(try bands { _ in } != nil)
        // A missing marker, a wrong marker, and two surplus ones.
        #expect(try bands { $0.removeSubrange(markers[2]...markers[2] + 1) } == nil)
        #expect(try bands { $0[markers[2] + 1] ^= 1 } == nil)
        #expect(try bands { $0.insert(contentsOf: [0xFF, 0xD6], at: $0.count - 2) } == nil)
        #expect(try bands { $0.insert(contentsOf: [0xFF, 0xD2], at: markers[2]) } == nil)
        // A foreign marker among them, and a missing end marker.
        #expect(try bands { $0.insert(contentsOf: [0xFF, 0xDC, 0, 4, 0, 110], at: markers[2]) } == nil)
        #expect(try bands { $0.removeLast(2) } == nil)
        // Bytes in the header that are not segments.
        #expect(try bands { $0.insert(contentsOf: [0xFF, 0xD8], at: 2) } == nil)
        #expect(try bands { $0.insert(contentsOf: [1, 2, 3], at: 2) } == nil)
        // Comments and fill bytes are valid.
        #expect(try bands { $0.insert(contentsOf: [0xFF, 0xFE, 0, 4, 1, 2], at: 2) } != nil)
        #expect(try bands { $0.insert(0xFF, at: markers[2]) } != nil)
    }

    @Test func `progressive files, those without markers and those that cost too much have no bands`() throws {
        let restarting = Data(try JPEGEntropyTests.file(restartInterval: 19))
        let options = DecodeOptions(limits: DecodingLimits(maximumWork: 20_000))
        #expect(try Self.open(restarting).bands(options: options, pixelsPerBand: 0) == nil)
        #expect(try Self.open(restarting).bandByteCount(options: DecodeOptions()) == nil)
        let other = Data(try JPEGEntropyTests.file())
        #expect(try Self.open(other).bands(options: DecodeOptions(), pixelsPerBand: 0) == nil)
    }

    /// The decoder recovers from damage at the next restart marker.
    @Test func `damaged codes give what one lane gives`() throws {
        let file = try JPEGEntropyTests.file(across: 2, down: 2, restartInterval: 5)
        let scan = try #require(Data(file).firstRange(of: Data([0xFF, 0xDA]))).upperBound + 12
        var generator = SeededGenerator(seed: 7)
        var count = 0
        for _ in 0..<60 {
            var damaged = file
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                let place = Int.random(in: scan..<file.count - 2, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: damaged[place] = UInt8.random(in: .min ... .max, using: &generator)
                case 1: damaged.remove(at: place)
                default: damaged.insert(UInt8.random(in: 0..<0xFF, using: &generator), at: place)
                }
            }
            let data = Data(damaged)
            for shortcuts in [[], JPEGCoder.Shortcuts.entropyDecodingOfSmallFiles] {
                guard let samples = try Self.divided(data, divisor: 1, shortcuts) else { continue }
                #expect(try samples == Self.whole(data, divisor: 1, shortcuts))
                count += 1
            }
        }
        #expect(count > 40)
    }

    // MARK: Lanes

    /// Returns a gray image of slightly more than two million pixels.
    private static func makeLarge() throws -> Data {
        var row = try PixelBuffer.noise(.gray8, width: 1_600, height: 1).samples
        row.replaceSubrange(0..<800, with: [UInt8](repeating: 90, count: 800))
        var samples: [UInt8] = []
        for number in 0..<1_264 { samples += row[(number % 500)...] + row[..<(number % 500)] }
        return Data(
            try JPEGEntropyTests.file(
                width: 1_600,
                height: 1_264,
                components: 1,
                restartInterval: 200,
                samples: samples
            )
        )
    }

    private static let large = Result { try Self.makeLarge() }

    private static func decodeTogether(
        _ decoder: ImageDecoder,
        _ options: DecodeOptions = DecodeOptions(),
        on lanes: DecodeLanes,
        _ gate: WeightedGate
    ) async throws -> DecodedImage {
        let (decoder, parallel) = try #require(decoder.parallelDecode(.image, options: options))
        return try await lanes.runTogether(
            helperCount: parallel.helperCount,
            reserving: { gate.placeIfFree(for: parallel.helperByteCount) },
            help: parallel.help,
            { try decoder.decodeStored(options: options) }
        )
    }

    @Test(arguments: [1, 4]) func `lanes that have nothing to do help with a large image`(divisor: Int) async throws {
        let data = try Self.large.get()
        let options = try Self.options(data, divisor: divisor)
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        let (lanes, gate) = (DecodeLanes(count: 4), WeightedGate(capacity: 1 << 30))
        let expected = try decoder.decodeStored(options: options)
        for _ in 0..<3 {
            await until { lanes.idleCount == 4 }
            let decoded = try await Self.decodeTogether(decoder, options, on: lanes, gate)
            #expect(decoded.image.pixels.samples == expected.image.pixels.samples)
            #expect(decoded.coveredWidth == expected.coveredWidth && decoded.coveredHeight == expected.coveredHeight)
            #expect(gate.usedWeight == 0)
        }
        // One lane decodes alone if there are no other lanes or there is no memory for them.
        for (lanes, capacity) in [(DecodeLanes(count: 1), 1 << 30), (lanes, 1)] {
            let gate = WeightedGate(capacity: capacity)
            let alone = try await Self.decodeTogether(decoder, options, on: lanes, gate)
            #expect(alone.image.pixels.samples == expected.image.pixels.samples)
        }
        #expect(decoder.parallelDecode(.rows, options: options) == nil)
    }

    @Test func `a cancellation ends all lanes`() async throws {
        let data = try Self.large.get()
        let decoder = try ImageDecoder(data, registry: SampleFiles.registry)
        let (lanes, gate) = (DecodeLanes(count: 2), WeightedGate(capacity: 1 << 30))
        let task = Locked<Task<DecodedImage, any Error>?>(nil)
        let isStarted = Gate()
        let observer = DecodeWork.Observer(look: { _ in task.withLock { $0 }?.cancel() })
        let decode = Task {
            await isStarted.wait()
            return try await DecodeWork.$observer.withValue(observer) {
                try await Self.decodeTogether(decoder, on: lanes, gate)
            }
        }
        task.withLock { $0 = decode }
        await isStarted.open()
        await #expect(throws: CancellationError.self) { _ = try await decode.value }
        #expect(gate.usedWeight == 0)
        await until { lanes.idleCount == 2 }
    }

    @Test(.enabled(if: AllocatedMemory.isMeasured)) func `a lane takes what the gate counts`() throws {
        let data = try Self.large.get()
        let encoded = try Self.open(data)
        let bands = try #require(try encoded.bands(options: DecodeOptions()))
        let counted = try #require(encoded.bandByteCount(options: DecodeOptions()))
        _ = try PixelBuffer(
            bands.layout,
            fillingUnsafely: { memory in
                let taken = try AllocatedMemory.peak { try bands.decode(into: memory, isFirst: false) { false } }
                    .byteCount
                #expect(taken <= counted, "counted \(counted), took \(taken)")
            }
        )
    }

    // MARK: The queue

    @Test(arguments: 1...5, [2, 3, 9, 46]) func `each band is given to one lane`(laneCount: Int, count: Int) {
        var generator = SeededGenerator(seed: UInt64(laneCount * 100 + count))
        var queue = BandQueue(count: count)
        var given: [Int] = []
        var begun = 0
        var last: [Int?] = [-1] + [Int?](repeating: nil, count: laneCount - 1)
        while true {
            let lane = Int.random(in: 0..<laneCount, using: &generator)
            guard let band = queue.next(after: last[lane]) else { break }
            if last[lane] != band - 1 { begun += 1 }
            last[lane] = band
            given.append(band)
        }
        #expect(given.sorted() == Array(0..<count))
        // A single lane decodes all bands in order.
        if laneCount == 1 { #expect(begun == 0 && given == given.sorted()) }
    }

    @Test func `a lane that comes takes half of what is left`() {
        var queue = BandQueue(count: 8)
        #expect(queue.next(after: -1) == 0)
        #expect(queue.next(after: nil) == 4)
        #expect(queue.next(after: 0) == 1)
        #expect(queue.next(after: 4) == 5)
        #expect([1, 2].map { queue.next(after: $0) } == [2, 3])
        #expect(queue.next(after: 3) == 7)
        #expect(queue.next(after: 5) == 6)
        #expect(queue.next(after: 7) == nil)
    }
}
