// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeConcurrency
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@testable import TintypeRendering

/// Checks that several lanes decode a large image to the same pixels as one lane.
@Suite(.computing, .timeLimit(.minutes(5))) struct IdleLaneTests {
    /// Returns a gray image, turned by EXIF, with equal rows of blocks and a restart marker after each row.
    private static func image() throws -> Data {
        let (width, rowCount) = (1_600, 160)
        let row = try PixelBuffer.noise(.gray8, width: width, height: 8)
        var file = Array(try JPEGCoder().encode(Image(pixels: row), as: .jpeg, options: EncodeOptions(quality: 30)))
        let frame = try #require(Data(file).firstRange(of: Data([0xFF, 0xC0]))).lowerBound
        let height = rowCount * 8
        file[frame + 5] = UInt8(height >> 8)
        file[frame + 6] = UInt8(height & 255)
        let marker = try #require(Data(file).firstRange(of: Data([0xFF, 0xDA]))).lowerBound
        let scan = marker + 2 + Int(file[marker + 2]) << 8 + Int(file[marker + 3])
        let codes = file[scan..<file.count - 2]
        let interval = width / 8
        var data = Data(file[..<2])
        data += [0xFF, 0xE1, 0, 34] + Array("Exif\0\0MM\0".utf8)
        data += [42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0]
        data += file[2..<marker]
        data += [0xFF, 0xDD, 0, 4, UInt8(interval >> 8), UInt8(interval & 255)]
        data += file[marker..<scan]
        for number in 0..<rowCount {
            data += codes
            data += [0xFF, number == rowCount - 1 ? 0xD9 : 0xD0 + UInt8(number & 7)]
        }
        return data
    }

    private static func pipeline(usesIdleLanes: Bool) -> DecodePipeline {
        DecodePipeline(
            registry: CoderRegistry(),
            lanes: GatedLanes(
                DecodeLanes(count: 3),
                gate: WeightedGate(capacity: 1 << 30),
                usesIdleLanes: usesIdleLanes
            ),
            previewGate: WeightedGate(capacity: 1),
            limits: DecodingLimits()
        )
    }

    @Test(arguments: [nil, 1_200, 200]) func `the image is the same`(side: Int?) async throws {
        let data = try Self.image()
        let request = RenderingRequest(
            thumbnail: side.map { .fit(width: $0, height: $0) }
        )
        let ends = Locked(0)
        let observer = DecodeWork.Observer(didEnd: { _ in ends.withLock { $0 += 1 } })
        func samples(usesIdleLanes: Bool) async throws -> (samples: [UInt8], parts: Int) {
            let pipeline = Self.pipeline(usesIdleLanes: usesIdleLanes)
            ends.withLock { $0 = 0 }
            let image = try await DecodeWork.$observer.withValue(observer) {
                try await pipeline.image(from: data, for: request).image
            }
            #expect(image.height == side ?? 1_600 && image.width == (side ?? 1_600) * 4 / 5)
            #expect(pipeline.lanes.gate.usedWeight == 0)
            return (image.pixels.samples, ends.withLock { $0 })
        }
        let alone = try await samples(usesIdleLanes: false)
        let together = try await samples(usesIdleLanes: true)
        #expect(together.samples == alone.samples)
        // One lane has two parts, the header and the decode. Several have the search for bands as well, and each lane
        // counts.
        #expect(alone.parts == 2 && together.parts > 2)
    }

    /// A single damaged marker prevents the division into bands.
    @Test func `a damaged image comes as from one lane`() async throws {
        var data = try Self.image()
        let marker = try #require(data.lastRange(of: Data([0xFF, 0xD3])))
        data[marker.upperBound - 1] = 0xD5
        let request = RenderingRequest()
        let together = try await Self.pipeline(usesIdleLanes: true).image(from: data, for: request).image
        let alone = try await Self.pipeline(usesIdleLanes: false).image(from: data, for: request).image
        #expect(together.pixels.samples == alone.pixels.samples)
    }

    /// The rows of the image are the same, so the codes of one row are valid in all bands.
    @Test(arguments: [0x00, 0x55, 0xFF] as [UInt8])
    func `damage in the codes of a band gives the result of one lane`(byte: UInt8) async throws {
        var data = try Self.image()
        let marker = try #require(data.lastRange(of: Data([0xFF, 0xD3])))
        for offset in 20..<60 { data[marker.upperBound + offset] = byte }
        func outcome(usesIdleLanes: Bool) async -> Result<[UInt8], CodingError>? {
            do throws(any Error) {
                let image = try await Self.pipeline(usesIdleLanes: usesIdleLanes)
                    .image(from: data, for: RenderingRequest(allowsTruncated: true)).image
                return .success(image.pixels.samples)
            } catch {
                return (error as? CodingError).map { .failure($0) }
            }
        }
        let (together, alone) = (await outcome(usesIdleLanes: true), await outcome(usesIdleLanes: false))
        switch (together, alone) {
        case (.success(let one), .success(let other)): #expect(one == other)
        case (.failure(let one), .failure(let other)): #expect(one.code == other.code)
        default: Issue.record("\(byte): the outcomes differ")
        }
    }

    /// The rows are resampled as they arrive.
    @Test func `a large PNG is the same`() async throws {
        let row = try PixelBuffer.noise(.rgb8, width: 3_400, height: 1).samples
        let layout = try PixelLayout(format: .rgb8, width: 3_400, height: 3_400)
        let pixels = try PixelBuffer(
            layout,
            fillingUnsafely: { bytes in
                bytes.initializeMemory(as: UInt8.self, repeating: 100)
                for number in stride(from: 0, to: 3_400, by: 50) {
                    UnsafeMutableRawBufferPointer(rebasing: bytes[(number * layout.planes[0].bytesPerRow)...])
                        .copyBytes(from: row)
                }
            }
        )
        var options = EncodeOptions()
        options.pngLevel = 1
        let data = try PNGCoder().encode(Image(pixels: pixels), as: .png, options: options)
        let request = RenderingRequest(
            thumbnail: .fit(width: 100, height: 100)
        )
        let pipeline = Self.pipeline(usesIdleLanes: true)
        let together = try await pipeline.image(from: data, for: request).image
        #expect(pipeline.lanes.gate.usedWeight == 0)
        let alone = try await Self.pipeline(usesIdleLanes: false).image(from: data, for: request).image
        #expect(together.pixels.samples == alone.pixels.samples)
    }
}
