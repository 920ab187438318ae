// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeCoding
import TintypeCodingSamples
import TintypeImage
import TintypeTestTraits

@Suite(.computing) struct FrameTests {
    @Test(arguments: [ImageFormat.jpeg, .png, .webp], [-1, 1, 100, Int.max])
    func `a still has only frame zero`(format: ImageFormat, frame: Int) throws {
        let data = try SampleFiles.smooth(format)
        let error = #expect(throws: CodingError.self) { try SampleFiles.decode(data, DecodeOptions(frame: frame)) }
        #expect(error?.code == .invalidOptions)
        #expect(error?.message.contains("\(frame)") == true)
        #expect(try SampleFiles.decode(data, DecodeOptions(frame: 0)).width == 64)
    }

    @Test(
        arguments: [
            ([(10, 100)], 1, [] as [Int]), ([(10, 1_000), (11, 1_000)], 7, [100, 11]),
            ([(1, 10), (0, 50)], 0, [100, 100]),
            ([(1, 0), (50, 0)], 3, [100, 500]),
        ] as [([(Int, Int)], Int, [Int])]
    )
    func `an animated PNG says its timing`(delays: [(Int, Int)], loops: Int, durations: [Int]) throws {
        var file = PNGFile(try SampleFiles.smooth(.png))
        for (index, delay) in delays.enumerated() {
            // After the first frame, a chunk of pixels follows each control chunk, and both have a sequence number.
            let number = UInt32(max(0, 2 * index - 1))
            let area = [number, 64, 48, 0, 0].flatMap(\.bigEndianBytes)
            let control = area + UInt16(delay.0).bigEndianBytes + UInt16(delay.1).bigEndianBytes + [0, 0]
            if index == 0 {
                file.insert("fcTL", control)
            } else {
                let pixels = file.chunks.last { $0.type == "IDAT" }?.body ?? []
                let end = file.chunks.count - 1
                file.chunks.insert(.init(type: "fdAT", body: (number + 1).bigEndianBytes + pixels), at: end)
                file.chunks.insert(.init(type: "fcTL", body: control), at: end)
            }
        }
        file.insert("acTL", UInt32(delays.count).bigEndianBytes + UInt32(loops).bigEndianBytes)
        let header = try ImageDecoder(file.data, registry: SampleFiles.registry).header
        #expect(header.animation.durations == durations)
        #expect(header.animation.loopCount == (durations.isEmpty ? 1 : loops))
    }
}
