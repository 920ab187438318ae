// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeConcurrency
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Checks that a decode to an eighth of the size skips the scans that it does not need, with the same result.
@Suite(.computing, .timeLimit(.minutes(5))) struct JPEGScanSkippingTests {
    /// The result of a decode: the samples, or the error code.
    private struct Outcome: Equatable {
        var samples: [UInt8] = []
        var failure: CodingError.Code?
    }

    /// Decodes to a `divisor`-th of the size, and counts the work.
    private static func decode(
        _ data: Data,
        divisor: Int = 8,
        allowsTruncated: Bool = false,
        limits: DecodingLimits = DecodingLimits(),
        _ shortcuts: JPEGCoder.Shortcuts
    ) -> (outcome: Outcome, work: Int) {
        let spent = Locked(0)
        let observer = DecodeWork.Observer(didEnd: { units in spent.withLock { $0 += units } })
        let outcome = DecodeWork.$observer.withValue(observer) {
            do {
                let encoded = try JPEGCoder(shortcuts: shortcuts).open(data)
                let size = PixelSize(
                    width: encoded.header.pixelWidth / divisor,
                    height: encoded.header.pixelHeight / divisor
                )
                var options = DecodeOptions(limits: limits, sufficientSize: size, allowsTruncated: allowsTruncated)
                options.color = .ignore
                return Outcome(samples: try encoded.decode(options: options).image.pixels.samples)
            } catch let error as CodingError {
                return Outcome(failure: error.code)
            } catch {
                Issue.record(error)
                return Outcome()
            }
        }
        return (outcome, spent.withLock { $0 })
    }

    private static func progressive(
        _ format: PixelFormat = .rgb8,
        width: Int = 203,
        height: Int = 149,
        subsampling: EncodeOptions.ChromaSubsampling = .none
    ) throws -> Data {
        let image = Image(pixels: try PixelBuffer.noise(format, width: width, height: height))
        let options = EncodeOptions(quality: 80, isProgressive: true, chromaSubsampling: subsampling)
        return try JPEGCoder().encode(image, as: .jpeg, options: options)
    }

    @Test(arguments: [EncodeOptions.ChromaSubsampling.none, .half, .quarter], [PixelFormat.rgb8, .gray8])
    func `an eighth is the same without the scans that it does not need`(
        subsampling: EncodeOptions.ChromaSubsampling,
        format: PixelFormat
    ) throws {
        let data = try Self.progressive(format, subsampling: subsampling)
        let (whole, allWork) = Self.decode(data, [])
        let (skipped, work) = Self.decode(data, .scans)
        #expect(whole.failure == nil)
        #expect(skipped == whole)
        // Most of the file's bytes are skipped, because they are AC coefficients of the luma.
        #expect(work < allWork - data.count / 2 * DecodeWork.unitsPerByte)
    }

    @Test(arguments: [1, 2, 4]) func `larger sizes need all scans`(divisor: Int) throws {
        let data = try Self.progressive()
        #expect(Self.decode(data, divisor: divisor, .scans) == Self.decode(data, divisor: divisor, []))
    }

    @Test(.enabled(if: Corpus.isRead)) func `progressive images of the corpus are the same`() throws {
        var skippedCount = 0
        for image in Corpus.images where image.format == "jpeg" && image.folder != "jpeg-fuzz" {
            let data = try image.data
            guard data.firstRange(of: Data([0xFF, 0xC2])) != nil else { continue }
            for allowsTruncated in [false, true] {
                let (whole, allWork) = Self.decode(data, allowsTruncated: allowsTruncated, [])
                let (skipped, work) = Self.decode(data, allowsTruncated: allowsTruncated, .scans)
                #expect(skipped == whole, "\(image.path)")
                #expect(work <= allWork)
                if work < allWork { skippedCount += 1 }
            }
        }
        #expect(skippedCount >= 20)
    }

    /// Smoothing of missing coefficients depends on all scans.
    @Test(arguments: [EncodeOptions.ChromaSubsampling.none, .quarter], [false, true])
    func `a file cut between its scans needs all of them`(
        subsampling: EncodeOptions.ChromaSubsampling,
        hasEnd: Bool
    ) throws {
        let data = try Self.progressive(subsampling: subsampling)
        let scans = data.indices.dropLast().filter { data[$0] == 0xFF && data[$0 + 1] == 0xDA }
        try #require(scans.count > 5)
        for scan in scans.dropFirst() {
            let cut = data.prefix(scan) + (hasEnd ? Data([0xFF, 0xD9]) : Data())
            #expect(Self.decode(cut, allowsTruncated: true, .scans) == Self.decode(cut, allowsTruncated: true, []))
        }
    }

    @Test(arguments: [false, true]) func `damaged files end as they do with all scans`(allowsTruncated: Bool) throws {
        let original = try Self.progressive(width: 90, height: 70, subsampling: .quarter)
        var generator = SeededGenerator(seed: 11)
        var skippedCount = 0
        for _ in 0..<600 {
            var data = original
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                let offset = Int.random(in: 2..<data.count, using: &generator)
                switch Int.random(in: 0..<4, using: &generator) {
                case 0: data[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
                case 1: data[offset] = 0xFF
                case 2:
                    data.replaceSubrange(
                        offset..<offset + 1,
                        with: [0xFF, UInt8.random(in: 0xC0...0xFE, using: &generator)]
                    )
                default: data.removeSubrange(offset..<min(data.count, offset + 3))
                }
            }
            let (whole, allWork) = Self.decode(data, allowsTruncated: allowsTruncated, [])
            let (skipped, work) = Self.decode(data, allowsTruncated: allowsTruncated, .scans)
            #expect(skipped == whole)
            if work < allWork { skippedCount += 1 }
        }
        #expect(skippedCount > 50)
    }

    @Test func `scans that are left out are no work, but count against their limit`() throws {
        let data = try Self.progressive()
        let enough = DecodingLimits(maximumWork: Self.decode(data, .scans).work)
        #expect(Self.decode(data, limits: enough, .scans).outcome.failure == nil)
        #expect(Self.decode(data, limits: enough, []).outcome.failure == .tooMuchWork)
        // A scan that refines nothing is repeated 600 times.
        let scan = try #require(data.firstRange(of: Data([0xFF, 0xDA])))
        var flood = data.prefix(scan.lowerBound)
        for _ in 0..<600 { flood += Data([0xFF, 0xDA, 0, 8, 1, 1, 0, 1, 63, 0]) }
        flood += data[scan.lowerBound...]
        #expect(Self.decode(flood, .scans).outcome == Self.decode(flood, []).outcome)
    }
}
