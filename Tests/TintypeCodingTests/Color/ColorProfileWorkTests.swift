// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

/// Profiles for which the colour library would take long to build a transform.
@Suite(.computing, .timeLimit(.minutes(10))) struct ColorProfileWorkTests {
    /// A profile whose pipelines would take minutes is treated as if it had no pipelines.
    ///
    /// A pipeline lists the offsets of its stages. All of them may point to the same stage, so a compressed profile of
    /// a few kilobytes can have very many stages.
    @Test(.enabled(if: Fixtures.corpus != nil)) func `pipelines of real numbers are left out`() throws {
        let folder = try #require(Fixtures.corpus).appending(path: "icc-profiles")
        let profile = try Data(contentsOf: folder.appending(path: "DisplayP3-v4.icc"))
        let pixels = try PixelBuffer.smooth(.rgb8, width: 16, height: 16)
        func decoded(with profile: Data) throws -> Image {
            var options = EncodeOptions()
            options.metadata.colorProfile = profile
            let data = try PNGCoder().encode(Image(pixels: pixels), as: .png, options: options)
            return try SampleFiles.decode(data)
        }
        let plain = try decoded(with: profile)
        // Each stage doubles every number, so a transform that used the stages would give white.
        let hostile = try decoded(with: Self.adding(stageCount: 200_000, to: profile))
        #expect(plain.pixels.withBytes { Array(Data($0)) } == hostile.pixels.withBytes { Array(Data($0)) })
    }

    /// Adds the tags `D2B0` and `D2B1`, whose stages are all the same matrix.
    private static func adding(stageCount: Int, to profile: Data) -> Data {
        let bytes = Array(profile)
        let count = Int(bytes[131])
        let bits: [UInt32] = [2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0].map { Float($0).bitPattern }
        let matrix = Array("matf".utf8) + [0, 0, 0, 0, 0, 3, 0, 3] + bits.flatMap(\.bigEndianBytes)
        let place = UInt32(16 + 8 * stageCount).bigEndianBytes + UInt32(matrix.count).bigEndianBytes
        var pipeline = Array("mpet".utf8) + [0, 0, 0, 0, 0, 3, 0, 3] + UInt32(stageCount).bigEndianBytes
        for _ in 0..<stageCount { pipeline += place }
        pipeline += matrix
        var tags: [UInt8] = []
        for index in 0..<count {
            let entry = Array(bytes[132 + index * 12..<144 + index * 12])
            let offset = entry[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } + 24
            tags += entry[..<4] + offset.bigEndianBytes + entry[8...]
        }
        let start = (bytes.count + 24 + 3) / 4 * 4
        for name in ["D2B0", "D2B1"] {
            tags += Array(name.utf8) + UInt32(start).bigEndianBytes + UInt32(pipeline.count).bigEndianBytes
        }
        var result = Array(bytes[..<128]) + UInt32(count + 2).bigEndianBytes + tags + bytes[(132 + count * 12)...]
        result += [UInt8](repeating: 0, count: start - result.count) + pipeline
        result.replaceSubrange(0..<4, with: UInt32(result.count).bigEndianBytes)
        return Data(result)
    }
}

extension Data {
    fileprivate init(_ span: RawSpan) {
        self = span.withUnsafeBytes { Data($0) }
    }
}
