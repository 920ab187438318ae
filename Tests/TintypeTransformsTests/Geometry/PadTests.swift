// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

@Suite struct PadTests {
    @Test(
        arguments: [
            (Pad.sides(left: 1, top: 2, right: 3, bottom: 4), (1, 2), (64, 46)),
            (.sides(bottom: 7), (0, 0), (60, 47)),
            (.size(width: 100, height: 100), (20, 30), (100, 100)),
            // Padding never cuts the image.
            (.size(width: 100, height: 10), (20, 0), (100, 40)),
            (.size(width: 100, height: 100, gravity: .southEast), (40, 60), (100, 100)),
            (.size(width: 100, height: 100, gravity: .focus(x: 0.4, y: 0)), (10, 0), (100, 100)),
            (.aspectRatio(1), (0, 10), (60, 60)),
            (.aspectRatio(3, gravity: .west), (0, 0), (120, 40)),
            (.aspectRatio(1.5), (0, 0), (60, 40)),
        ] as [(Pad, (Int, Int), (Int, Int))],
        [Color.clear, .white, Color(red: 200, green: 30, blue: 90)]
    )
    func `adds colour beside the image`(
        row: (pad: Pad, place: (x: Int, y: Int), size: (width: Int, height: Int)),
        color: Color
    ) throws {
        for format in [PixelFormat.gray8, .rgb8, .rgba8] {
            var pad = row.pad
            pad.color = color
            let pixels = try PixelBuffer.noise(format, width: 60, height: 40)
            let padded = try pad.transform(Image(pixels: pixels)).pixels
            #expect((padded.width, padded.height) == row.size)
            #expect(try pad.footprint(for: pixels.layout).result == padded.layout)
            if row.size == (60, 40) {
                #expect(padded === pixels)
                continue
            }
            let expected: PixelFormat =
                color == .clear ? .rgba8 : color == .white ? format : format == .rgba8 ? format : .rgb8
            #expect(padded.format == expected)
            let samples = [color.red, color.green, color.blue, color.alpha]
            #expect(
                padded.largestDifference { column, line, channel in
                    let (x, y) = (column - row.place.x, line - row.place.y)
                    guard (0..<60).contains(x), (0..<40).contains(y) else { return Int(samples[channel]) }
                    if channel == 3, format != .rgba8 { return 255 }
                    return pixels.sample(x, y, format == .gray8 ? 0 : channel)
                } == 0
            )
            let back = try Crop.rectangle(x: row.place.x, y: row.place.y, width: 60, height: 40)
                .transform(Image(pixels: padded)).pixels
            if expected == format { #expect(back.samples == pixels.samples) }
        }
    }

    @Test(
        arguments: [
            (.sides(left: -1), .invalidParameter), (.sides(top: Int.min), .invalidParameter),
            (.sides(left: Int.max, right: Int.max), .invalidSize), (.sides(right: Int(Int32.max)), .invalidSize),
            (.size(width: 0, height: 9), .invalidParameter), (.size(width: 9, height: -9), .invalidParameter),
            (.size(width: Int.max, height: 1), .invalidSize),
            (.size(width: 1, height: Int.max, gravity: .southEast), .invalidSize), (.aspectRatio(0), .invalidParameter),
            (.aspectRatio(.nan), .invalidParameter), (.aspectRatio(.infinity), .invalidParameter),
            (.aspectRatio(1e300), .invalidSize), (.aspectRatio(1e-300), .invalidSize),
        ] as [(Pad, TransformError.Code)]
    )
    func `what makes no canvas is refused`(pad: Pad, code: TransformError.Code) throws {
        let image = Image(pixels: try .noise(.gray8, width: 4, height: 4))
        #expect(#expect(throws: TransformError.self) { try pad.transform(image) }?.code == code)
        #expect(throws: TransformError.self) { try pad.footprint(for: image.pixels.layout) }
    }

    @Test(arguments: [
        (#"{"sides":{"left":1,"bottom":4}}"#, Pad.sides(left: 1, bottom: 4)),
        (
            ##"{"size":{"width":3,"height":4,"gravity":"north"},"color":"#fff"}"##,
            .size(width: 3, height: 4, gravity: .north, color: .white)
        ),
        (#"{"aspectRatio":{"ratio":1.5}}"#, .aspectRatio(1.5)),
    ])
    func `is read from a description and written to one`(text: String, pad: Pad) throws {
        #expect(try JSONDecoder().decode(Pad.self, from: Data(text.utf8)) == pad)
        #expect(try JSONDecoder().decode(Pad.self, from: JSONEncoder().encode(pad)) == pad)
    }

    @Test func `keys tell all parameters apart`() {
        let pads: [Pad] = [
            .sides(left: 1), .sides(top: 1), .sides(right: 1), .sides(bottom: 1), .sides(left: 1, color: .white),
            .size(width: 1, height: 2), .size(width: 2, height: 1), .size(width: 1, height: 2, gravity: .north),
            .aspectRatio(1.5), .aspectRatio(2), .aspectRatio(2, gravity: .east),
        ]
        #expect(Set(pads.map(\.key)).count == pads.count)
    }
}
